// Where one types: the field, the button that sends or stops, the model, how full its context is.

import { announce } from "./announcer.js";
import { pathOf } from "./conversation.js";
import { byId, el } from "./dom.js";
import { icon } from "./icons.js";
import { shortName } from "./thread.js";
import { growWithText, sendsOn } from "./typing.js";

export class Composer {
  constructor(session) {
    this.session = session;
    this.drafts = new Map(); // unsent text by conversation
    this.draftOf = null;
    this.field = el("textarea", { id: "composer-text", rows: "1", placeholder: "Write a message", "aria-label": "Message", enterkeyhint: "send", dir: "auto" });
    this.fit = growWithText(this.field);
    this.button = el("button", { type: "button", class: "send", on: { click: () => this.press() } });
    this.models = el("div", { class: "models" });
    this.meter = el("span", { class: "meter" });
    const foot = el("div", { class: "foot" }, this.models, this.meter, this.button);
    byId("dock").append(el("div", { class: "composer" }, this.field, foot));
    this.field.addEventListener("input", () => this.draw());
    this.field.addEventListener("keydown", (event) => this.onKey(event));
    session.addEventListener("shown", () => this.swapDraft());
    for (const event of ["list", "progress", "shown"]) session.addEventListener(event, () => this.draw());
    session.addEventListener("models", () => this.drawModels());
    this.draw();
  }

  onKey(event) {
    if (sendsOn(event)) {
      event.preventDefault();
      if (!this.session.isRunning()) this.send();
    } else if (event.key === "ArrowUp" && this.field.value === "") {
      const questions = byId("thread").querySelectorAll(".message.user [aria-label='Edit and resend']");
      [...questions].at(-1)?.click();
      event.preventDefault();
    }
  }

  press() {
    if (this.session.isRunning()) this.session.stop();
    else this.send();
    this.field.focus();
  }

  send() {
    const text = this.field.value.trim();
    if (!text) return;
    this.field.value = "";
    this.drafts.delete(this.draftOf);
    this.fit();
    this.session.send(text);
    announce("Sent");
  }

  /** Each conversation has what was begun there. */
  swapDraft() {
    const id = this.session.current?.id ?? null;
    if (id === this.draftOf) return;
    if (this.field.value) this.drafts.set(this.draftOf, this.field.value);
    else this.drafts.delete(this.draftOf);
    this.draftOf = id;
    this.field.value = this.drafts.get(id) ?? "";
    this.fit();
  }

  draw() {
    const running = this.session.isRunning();
    const kind = running ? "stop" : "send";
    if (this.button.dataset.kind !== kind) {
      this.button.dataset.kind = kind;
      this.button.replaceChildren(icon(kind));
      this.button.setAttribute("aria-label", running ? "Stop" : "Send");
      this.button.title = running ? "Stop (Esc)" : "Send (Enter)";
    }
    this.button.disabled = !running && !this.field.value.trim();
    this.drawMeter();
  }

  drawMeter() {
    const { current, model } = this.session;
    const answer = current && pathOf(current).findLast((node) => node.completion_tokens !== undefined);
    const used = answer ? answer.prompt_tokens + answer.completion_tokens : 0;
    const context = model?.context;
    this.meter.textContent = used && context ? `${Math.ceil((used / context) * 100)} % of context` : "";
    this.meter.title = used && context ? `${used.toLocaleString()} of ${context.toLocaleString()} tokens` : "";
    this.meter.classList.toggle("full", Boolean(context) && used > 0.9 * context);
  }

  drawModels() {
    const { models, model } = this.session;
    if (models.length > 1) {
      const options = models.map(({ id }) => el("option", { value: id, text: shortName(id), selected: id === model.id }));
      const choose = (event) => this.session.change({ model: event.target.value });
      this.models.replaceChildren(el("select", { "aria-label": "Model", on: { change: choose } }, options));
    } else this.models.replaceChildren(el("span", { text: model ? shortName(model.id) : "", title: model?.id }));
    this.drawMeter();
  }
}
