// The panel of settings: drawn from the table in settings.js, kept at every change.

import { isRemembered, readKey, writeKey } from "./api_key.js";
import { el } from "./dom.js";
import { icon } from "./icons.js";
import { newPanel } from "./panel.js";
import { numberOf, SAMPLING, THEMES, THINKING } from "./settings.js";

const THEME_LABELS = { auto: "System", light: "Light", dark: "Dark" };
const THINKING_LABELS = { auto: "Model's own", on: "On", off: "Off" };
const THEME_ICONS = { auto: "auto", light: "sun", dark: "moon" };

export class SettingsPanel {
  constructor(session) {
    this.session = session;
    this.dialog = newPanel("Settings");
    this.inside = this.dialog.querySelector(".inside");
    this.dialog.addEventListener("close", () => this.onClose());
  }

  open(focus = null) {
    this.keyAtOpening = readKey();
    this.inside.replaceChildren(this.looks(), this.system(), this.answers(), this.sampling(), this.server(), this.storage());
    this.dialog.showModal();
    this.inside.scrollTop = 0;
    if (focus) this.inside.querySelector(focus)?.focus();
  }

  onClose() {
    if (readKey() !== this.keyAtOpening) this.session.loadModels();
  }

  looks() {
    return this.segments("theme", "Theme", THEMES, (theme) => [icon(THEME_ICONS[theme]), THEME_LABELS[theme]]);
  }

  /** One of a few values, side by side. */
  segments(name, label, values, shown) {
    const choices = values.map((value) => {
      const choice = el("input", { type: "radio", name, value, checked: this.session.settings[name] === value });
      choice.addEventListener("change", () => this.session.change({ [name]: value }));
      return el("label", {}, choice, ...shown(value));
    });
    return el("fieldset", { class: "segments" }, el("legend", { text: label }), ...choices);
  }

  system() {
    const { current, settings } = this.session;
    const field = el("textarea", { id: "set-system", rows: "3", value: current ? current.system : settings.system, dir: "auto", placeholder: "None" });
    field.addEventListener("change", () => {
      if (current) {
        current.system = field.value;
        this.session.keep(current);
        this.session.emit("shown");
      } else this.session.change({ system: field.value });
    });
    const hint = current ? "For this conversation: how the model should answer" : "For new chats: how the model should answer";
    return row("System message", hint, field, "tall");
  }

  answers() {
    const { settings } = this.session;
    return el("div", { class: "group" },
      this.toggle("probabilities", "Token probabilities", "Tints doubt; point at a word for what else was likely", settings.probabilities),
      this.segments("thinking", "Thinking before the answer", THINKING, (value) => [THINKING_LABELS[value]]));
  }

  toggle(name, label, hint, on) {
    const field = el("input", { id: `set-${name}`, type: "checkbox", class: "switch", checked: on });
    field.addEventListener("change", () => this.session.change({ [name]: field.checked }));
    return row(label, hint, field);
  }

  sampling() {
    const rows = SAMPLING.map((setting) => this.number(setting));
    const stop = el("input", { id: "set-stop", value: this.session.settings.stop.map(escaped).join(", "), placeholder: "None", autocomplete: "off" });
    stop.addEventListener("change", () => this.session.change({ stop: stop.value.split(",").map((text) => unescaped(text.trim())).filter(Boolean) }));
    const reset = el("button", { type: "button", class: "small", text: "Back to the model's own", on: { click: () => {
      this.session.change({ sampling: {}, stop: [] });
      this.inside.querySelector(".sampling").replaceWith(this.sampling());
      this.inside.querySelector(".sampling button").focus();
    } } });
    return el("div", { class: "group sampling" }, el("h3", { text: "Sampling" }), ...rows,
      row("Stop at", "Texts that end an answer, commas between; \\n is a line break", stop), reset);
  }

  number(setting) {
    const { name, label, hint, low, high, step } = setting;
    const { sampling } = this.session.settings;
    const field = el("input", {
      id: `set-${name}`, type: "number", min: low, max: high, step: step < 1 ? "any" : "1", value: sampling[name] ?? "",
      placeholder: "default", inputmode: step < 1 ? "decimal" : "numeric", autocomplete: "off",
    });
    field.addEventListener("input", () => {
      const value = field.value === "" && !field.validity.badInput ? null : numberOf(setting, field.valueAsNumber);
      const wrong = value === null && (field.value !== "" || field.validity.badInput);
      field.setCustomValidity(wrong ? `${step < 1 ? "A number" : "A whole number"} from ${low} to ${high}` : "");
      field.toggleAttribute("aria-invalid", wrong);
      if (wrong) return void field.reportValidity();
      const rest = { ...this.session.settings.sampling };
      delete rest[name];
      this.session.change({ sampling: value === null ? rest : { ...rest, [name]: value } });
    });
    return row(label, hint, field);
  }

  server() {
    const key = el("input", { id: "set-key", type: "password", value: readKey(), placeholder: "None", autocomplete: "off", spellcheck: "false" });
    const remember = el("input", { id: "set-remember", type: "checkbox", class: "switch", checked: isRemembered() });
    const keep = () => writeKey(key.value.trim(), remember.checked);
    key.addEventListener("change", keep);
    remember.addEventListener("change", keep);
    key.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault(); // else it presses the button that gets the focus back
      keep();
      this.dialog.close();
    });
    // Browsers hold a password field for broken that is in no form.
    return el("form", { class: "group", on: { submit: (event) => event.preventDefault() } }, el("h3", { text: "Server" }),
      row("API key", "Where the server asks for one", key), row("Remember it", "On this device; else until this tab is closed", remember));
  }

  storage() {
    const { store } = this.session;
    const count = store.conversations.size;
    const facts = el("p", { class: "hint", text: `${count} conversation${count === 1 ? "" : "s"} in this browser.` });
    if (store.unreadable.length > 0) {
      const found = store.unreadable.length;
      facts.textContent += ` ${found} more cannot be read.`;
      facts.append(" ", el("button", { type: "button", class: "small", text: "Remove", on: { click: (event) => {
        store.removeUnreadable();
        event.target.replaceWith("Removed.");
      } } }));
    }
    return el("div", { class: "group" }, el("h3", { text: "Storage" }), facts);
  }
}

function row(label, hint, field, kind = "") {
  const hintId = `${field.id}-hint`;
  field.setAttribute("aria-describedby", hintId);
  const said = el("div", {}, el("label", { for: field.id, text: label }), el("p", { class: "hint", id: hintId, text: hint }));
  return el("div", { class: `setting ${kind}` }, said, field);
}

const escaped = (text) => text.replaceAll("\n", "\\n").replaceAll("\t", "\\t");
const unescaped = (text) => text.replaceAll("\\n", "\n").replaceAll("\\t", "\t");
