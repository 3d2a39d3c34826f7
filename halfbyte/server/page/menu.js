// A button with a menu: arrow keys move, Escape closes and gives the focus back.

import { el } from "./dom.js";

/** `entries` is called at each opening: [{label, act, danger}]. */
export function newMenu(button, entries) {
  const list = el("div", { class: "menu", role: "menu", hidden: true });
  const box = el("div", { class: "menu-box" }, button, list);
  button.setAttribute("aria-haspopup", "menu");
  const toggle = (open) => {
    list.hidden = !open;
    button.setAttribute("aria-expanded", String(open));
    if (!open) return;
    list.replaceChildren(...entries().map(({ label, act, danger }) => entry(label, danger, () => {
      close();
      act();
    })));
    list.firstElementChild.focus();
  };
  const close = () => {
    const inside = list.contains(document.activeElement);
    toggle(false);
    if (inside) button.focus();
  };
  toggle(false);
  button.addEventListener("click", () => (list.hidden ? toggle(true) : close()));
  list.addEventListener("keydown", (event) => moveOn(event, list, close));
  document.addEventListener("pointerdown", (event) => list.hidden || box.contains(event.target) || toggle(false));
  box.addEventListener("focusout", (event) => list.hidden || box.contains(event.relatedTarget) || !event.relatedTarget || toggle(false));
  return box;
}

function entry(label, danger, act) {
  return el("button", { type: "button", role: "menuitem", tabindex: "-1", class: danger ? "danger" : null, text: label, on: { click: act } });
}

function moveOn(event, list, close) {
  const items = [...list.children];
  const at = items.indexOf(document.activeElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1 + items.length, Home: 0, End: items.length - 1 }[event.key];
  if (to !== undefined) items[to % items.length].focus();
  else if (event.key === "Escape" || event.key === "Tab") close();
  else return;
  event.preventDefault();
  event.stopPropagation();
}
