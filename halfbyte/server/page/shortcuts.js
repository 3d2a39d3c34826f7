// Keys: a table that the page listens by and the dialog is drawn from.

import { el, isTyping } from "./dom.js";
import { newPanel } from "./panel.js";

const apple = /Mac|iPhone|iPad/.test(navigator.platform);
const CONTROL = apple ? "⌘" : "Ctrl";

/** Keys that fields handle themselves, for the dialog alone. */
const IN_FIELDS = [
  ["Enter", "Send"],
  ["Shift Enter", "New line"],
  ["↑", "Edit the last question, from an empty field"],
  ["F2", "Rename a conversation, from the list"],
  ["Delete", "Delete a conversation, from the list"],
  ["← →", "From token to token, where probabilities are shown"],
];

/** `acts` holds what keys do; see TABLE. */
export function listenForShortcuts(acts) {
  const TABLE = [
    { keys: `${CONTROL} Shift O`, what: "New chat", is: (event) => withControl(event, "o", true), act: acts.create },
    { keys: "Alt ↑ ↓", what: "Conversation before or after", is: (event) => event.altKey && /^Arrow(Up|Down)$/.test(event.key), act: acts.step },
    { keys: `${CONTROL} B`, what: "List of conversations", is: (event) => withControl(event, "b", false), act: acts.sidebar },
    { keys: `${CONTROL} ,`, what: "Settings", is: (event) => withControl(event, ",", false), act: acts.settings },
    { keys: "Esc", what: "Stop the answer", is: (event) => event.key === "Escape" && acts.isRunning(), act: acts.stop },
    { keys: "/", what: "To the message field", is: (event) => plain(event, "/"), act: acts.write },
    { keys: "?", what: "These shortcuts", is: (event) => plain(event, "?"), act: acts.help },
  ];
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || document.querySelector("dialog[open]")) return;
    const found = TABLE.find((row) => row.is(event));
    if (!found) return;
    event.preventDefault();
    found.act(event);
  });
  return newPanel("Shortcuts", drawn([...IN_FIELDS, ...TABLE.map(({ keys, what }) => [keys, what])]));
}

function drawn(rows) {
  return el("dl", { class: "shortcuts" }, rows.map(([keys, what]) => el("div", {},
    el("dt", { text: what }), el("dd", {}, keys.split(" ").map((key) => el("kbd", { text: key }))))));
}

function withControl(event, key, shift) {
  return (apple ? event.metaKey : event.ctrlKey) && event.shiftKey === shift && !event.altKey && event.key.toLowerCase() === key;
}

function plain(event, key) {
  return event.key === key && !event.ctrlKey && !event.metaKey && !event.altKey && !isTyping(event.target);
}
