// A button that copies a text and says that it did.

import { announce } from "./announcer.js";
import { el } from "./dom.js";
import { icon } from "./icons.js";

export function copyButton(label, text, shown = "") {
  const button = el("button", { type: "button", class: "quiet", "aria-label": label, title: label }, icon("copy"), shown);
  button.addEventListener("click", async () => {
    const done = await copyText(text());
    button.replaceChildren(icon(done ? "check" : "close"), shown && (done ? "Copied" : "Not copied"));
    announce(done ? "Copied" : "The browser did not let it be copied");
    setTimeout(() => button.replaceChildren(icon("copy"), shown), 1600);
  });
  return button;
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

/** For pages over plain HTTP from another machine, which have no clipboard of their own. */
function copyBySelection(text) {
  const field = el("textarea", { class: "hidden-text", value: text, "aria-hidden": "true" });
  const before = document.activeElement;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  before?.focus?.();
  return done;
}
