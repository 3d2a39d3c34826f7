// The field a question turns into while it is edited.

import { el } from "./dom.js";
import { growWithText, sendsOn } from "./typing.js";

export function newEditor(text, send, close) {
  const field = el("textarea", { value: text, rows: "1", "aria-label": "Edit your message" });
  const submit = () => {
    if (!field.value.trim()) return;
    close();
    send(field.value);
  };
  growWithText(field);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      event.stopPropagation();
      close();
    } else if (sendsOn(event)) {
      event.preventDefault();
      submit();
    }
  });
  const cancel = el("button", { type: "button", class: "small", text: "Cancel", on: { click: close } });
  const done = el("button", { type: "button", class: "small strong", text: "Send", on: { click: submit } });
  return el("div", { class: "editor" }, field, el("div", { class: "row" }, cancel, done));
}
