// A short notice at the edge that goes away by itself, with something to do about it or not.

import { announce } from "./announcer.js";
import { byId, el } from "./dom.js";
import { icon } from "./icons.js";

const LASTS = 8000;

export function toast(text, action = null) {
  const box = el("div", { class: "toast" }, el("span", { text }));
  const timer = { id: 0 };
  const close = () => {
    clearTimeout(timer.id);
    box.remove();
  };
  const wait = () => (timer.id = setTimeout(close, LASTS));
  if (action) {
    box.append(el("button", { type: "button", class: "small strong", text: action.label, on: { click: () => {
      close();
      action.act();
    } } }));
  }
  box.append(el("button", { type: "button", class: "quiet", "aria-label": "Close", on: { click: close } }, icon("close")));
  box.addEventListener("pointerenter", () => clearTimeout(timer.id));
  box.addEventListener("pointerleave", wait);
  box.addEventListener("focusin", () => clearTimeout(timer.id));
  box.addEventListener("focusout", wait);
  byId("toasts").append(box);
  announce(text);
  wait();
}
