// The list of conversations, by the day they were last used.

import { byId, el } from "./dom.js";
import { icon, nibble } from "./icons.js";

const DAY = 86_400_000;
const narrow = matchMedia("(max-width: 54rem)");

export class Sidebar {
  /** `acts`: create, rename, remove, settings, shortcuts. */
  constructor(session, acts) {
    this.session = session;
    this.acts = acts;
    this.box = byId("sidebar");
    this.scrim = byId("scrim");
    this.list = el("div", { class: "list" });
    this.box.append(this.head(), this.list, this.footer());
    this.scrim.addEventListener("click", () => this.toggle(false));
    this.box.addEventListener("keydown", (event) => this.onKey(event));
    session.addEventListener("list", () => this.draw());
    narrow.addEventListener("change", () => this.toggle(!narrow.matches));
    this.toggle(!narrow.matches);
    this.draw();
  }

  head() {
    const brand = el("div", { class: "brand" }, nibble(), el("span", { text: "halfbyte" }));
    const create = el("button", { type: "button", class: "wide", on: { click: () => this.pick(() => this.acts.create()) } }, icon("plus"), "New chat");
    return el("div", { class: "head" }, brand, create);
  }

  footer() {
    const entry = (name, label, act) => el("button", { type: "button", class: `wide ${name}`, on: { click: () => this.pick(act) } }, icon(name), label);
    return el("div", { class: "end" }, entry("sliders", "Settings", () => this.acts.settings()), entry("keys", "Shortcuts", () => this.acts.shortcuts()));
  }

  draw() {
    const focused = this.box.contains(document.activeElement) ? document.activeElement.dataset.id : null;
    this.list.replaceChildren();
    let title = null;
    let group = null;
    for (const conversation of this.session.store.list()) {
      const day = dayOf(conversation.updated);
      if (day !== title) {
        title = day;
        group = el("ul", { "aria-label": day });
        this.list.append(el("h2", { text: day }), group);
      }
      group.append(el("li", {}, this.entry(conversation)));
    }
    if (focused) this.list.querySelector(`[data-id="${focused}"]`)?.focus();
  }

  entry(conversation) {
    const shown = conversation === this.session.current;
    const busy = this.session.isRunning(conversation);
    const title = el("span", { class: "title", dir: "auto", text: conversation.title || "Untitled" });
    return el("button", {
      type: "button", class: "entry", "data-id": conversation.id, "aria-current": shown ? "page" : null,
      on: { click: () => this.pick(() => this.session.open(conversation)) },
    }, title, busy && nibble(true), busy && el("span", { class: "hidden-text", text: "answering" }));
  }

  pick(act) {
    if (narrow.matches) this.toggle(false);
    act();
  }

  onKey(event) {
    const conversation = this.session.store.conversations.get(event.target.dataset?.id);
    if (event.key === "Escape" && narrow.matches) this.toggle(false);
    else if (event.key === "Delete" && conversation) this.acts.remove(conversation);
    else if (event.key === "F2" && conversation) {
      this.session.open(conversation);
      this.acts.rename();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") this.step(event);
  }

  step(event) {
    const entries = [...this.list.querySelectorAll(".entry")];
    const at = entries.indexOf(document.activeElement);
    if (at < 0) return;
    event.preventDefault();
    entries[at + (event.key === "ArrowDown" ? 1 : -1)]?.focus();
  }

  /** Open or close; closed it is out of the way of keyboards and screen readers too. */
  toggle(open = this.box.inert) {
    this.box.inert = !open;
    document.body.classList.toggle("sidebar-closed", !open);
    this.scrim.hidden = !(open && narrow.matches);
    if (open && narrow.matches) this.box.querySelector(".entry, button")?.focus();
    else if (narrow.matches) byId("sidebar-button")?.focus();
    byId("sidebar-button")?.setAttribute("aria-expanded", String(open));
  }
}

function dayOf(time) {
  const today = new Date().setHours(0, 0, 0, 0);
  if (time >= today) return "Today";
  if (time >= today - DAY) return "Yesterday";
  if (time >= today - 7 * DAY) return "Last seven days";
  return new Date(time).toLocaleDateString(undefined, { month: "long", year: "numeric" });
}
