// One message on the page: its text, its thinking, what can be done with it.

import { siblingsOf } from "./conversation.js";
import { copyButton } from "./copy.js";
import { el } from "./dom.js";
import { icon, nibble } from "./icons.js";
import { Markdown } from "./markdown.js";
import { newEditor } from "./message_editor.js";
import { tokenPieces } from "./probabilities.js";

/** `acts` holds what the buttons do: retry, edit, show, and settings. */
export class MessageView {
  constructor(node, conversation, acts) {
    this.node = node;
    this.conversation = conversation;
    this.acts = acts;
    this.user = node.role === "user";
    this.body = el("div", { class: this.user ? "body" : "body markdown" });
    this.foot = el("footer", { class: "foot" });
    this.element = el("article", { class: `message ${node.role}`, "aria-label": this.user ? "You" : "Answer", "data-id": node.id }, this.body, this.foot);
    if (this.user) this.body.textContent = node.text; // a question is shown as it was typed
    else this.makeAnswer();
  }

  makeAnswer() {
    this.thinking = newThinking();
    this.status = el("div", { class: "status" });
    this.body.before(this.thinking.box);
    this.body.after(this.status);
    this.text = new Markdown(this.body);
  }

  /** Draw what the message is now; `growing` while its answer comes, `last` for the newest of its branch. */
  update(growing, last) {
    this.element.classList.toggle("growing", growing);
    this.element.classList.toggle("last", last);
    if (!this.user) this.updateAnswer(growing);
    if (!growing || !this.foot.hasChildNodes()) this.drawFoot(growing);
  }

  updateAnswer(growing) {
    const { node } = this;
    this.thinking.update(node, growing && !node.text);
    this.text.update(node.text);
    const waiting = growing && !node.text;
    this.status.replaceChildren(...(waiting && !node.thinking ? [nibble(true), el("span", { class: "hidden-text", text: "Waiting for the first word" })] : []));
    if (!growing) {
      this.status.append(...endings(node, this.acts));
      this.dressTokens();
    }
  }

  /** Show or hide the probabilities of this answer's tokens. */
  dressTokens(on = this.acts.settings().probabilities) {
    const dressed = Boolean(on && this.node.tokens?.length);
    if (dressed === this.dressed) return;
    this.dressed = dressed;
    const pieces = dressed ? tokenPieces(this.node) : {};
    this.text.redraw(pieces.text);
    this.thinking.redraw(pieces.thinking);
    this.element.classList.toggle("dressed", dressed);
    if (dressed) this.body.tabIndex = 0; // so that arrow keys go from token to token
    else this.body.removeAttribute("tabindex");
    this.drawFoot(false);
  }

  drawFoot(growing) {
    if (growing) return void this.foot.replaceChildren();
    const { node, acts } = this;
    const actions = el("div", { class: "actions" }, this.branches(), copyButton("Copy message", () => node.text));
    if (this.user) actions.append(button("edit", "Edit and resend", () => this.edit()));
    else actions.append(button("retry", "Answer again", () => acts.retry(node)));
    if (node.tokens?.length) {
      actions.append(button("bars", "Token probabilities", () => this.dressTokens(!this.dressed), { "aria-pressed": String(Boolean(this.dressed)) }));
    }
    this.foot.replaceChildren(actions, el("span", { class: "facts", text: factsOf(node) }));
  }

  branches() {
    const all = siblingsOf(this.conversation, this.node);
    if (all.length < 2) return null;
    const at = all.indexOf(this.node);
    const step = (by, name, label) => button(name, label, () => this.acts.show(all[at + by]), { disabled: !all[at + by] });
    return el("span", { class: "branches" }, step(-1, "left", "Version before"),
      el("span", { "aria-label": `Version ${at + 1} of ${all.length}`, text: `${at + 1}/${all.length}` }), step(1, "right", "Next version"));
  }

  /** Turn a question into a field; sending it asks anew beside the old one. */
  edit() {
    if (this.editor) return;
    const close = () => {
      this.editor.remove();
      this.editor = null;
      this.element.classList.remove("editing");
      this.foot.querySelector("[aria-label='Edit and resend']")?.focus();
    };
    this.editor = newEditor(this.node.text, (text) => this.acts.edit(this.node, text), close);
    this.element.classList.add("editing");
    this.element.append(this.editor);
    const field = this.editor.querySelector("textarea");
    field.dispatchEvent(new Event("input"));
    field.focus();
    field.setSelectionRange(field.value.length, field.value.length);
  }
}

function button(name, label, act, more = {}) {
  return el("button", { type: "button", class: "quiet", "aria-label": label, title: label, on: { click: act }, ...more }, icon(name));
}

/** Thinking, folded: a line that can be opened. */
function newThinking() {
  const label = el("span");
  const inside = el("div", { class: "markdown" });
  const box = el("details", { class: "thinking", hidden: true }, el("summary", {}, label), inside);
  const text = new Markdown(inside);
  return {
    box,
    redraw: (piece) => text.redraw(piece),
    update(node, busy) {
      box.hidden = !node.thinking?.trim();
      box.classList.toggle("busy", busy);
      const seconds = node.thought_ms ? ` for ${(node.thought_ms / 1000).toFixed(1)} s` : "";
      const said = busy ? "Thinking" : `Thought${seconds}`;
      if (label.textContent !== said) label.replaceChildren(said, busy ? nibble(true) : "");
      text.update(node.thinking ?? "");
    },
  };
}

/** How an answer ended, where that is not of its own accord. */
function endings(node, acts) {
  if (node.finish === "error") {
    const again = el("button", { type: "button", class: "small", text: "Try again", on: { click: () => acts.retry(node) } });
    return [el("div", { class: "failure", role: "alert" }, el("p", { text: node.error ?? "Something went wrong." }), again)];
  }
  const said = {
    length: "Cut at the longest answer that was allowed.",
    stopped: "Stopped.",
    undefined: "This answer was interrupted.",
  }[node.finish];
  if (said) return [el("p", { class: "ending", text: said })];
  return node.text || node.thinking ? [] : [el("p", { class: "ending", text: "The model answered nothing." })];
}

function factsOf({ completion_tokens: count, rate, first_s: first }) {
  const facts = [];
  if (count !== undefined) facts.push(`${count.toLocaleString()} token${count === 1 ? "" : "s"}`);
  if (rate) facts.push(`${rate.toFixed(rate < 10 ? 1 : 0)} tokens/s`);
  if (first !== undefined) facts.push(`first after ${first < 0.1 ? `${Math.round(first * 1000)} ms` : `${first.toFixed(1)} s`}`);
  return facts.join(" · ");
}
