// A dialog at the side or, on a phone, over all. Escape, its button and a press beside it close it.

import { el } from "./dom.js";
import { icon } from "./icons.js";

let count = 0;

export function newPanel(title, ...children) {
  const id = `panel-${++count}`;
  const close = el("button", { type: "button", class: "quiet", "aria-label": "Close" }, icon("close"));
  const head = el("header", {}, el("h2", { id, text: title }), close);
  const dialog = el("dialog", { class: "panel", "aria-labelledby": id }, head, el("div", { class: "inside" }, ...children));
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  document.body.append(dialog);
  return dialog;
}
