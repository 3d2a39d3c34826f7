// The bar over the messages: which conversation this is, and what can be done with it.

import { byId, el } from "./dom.js";
import { icon } from "./icons.js";
import { newMenu } from "./menu.js";
import { exportJson, exportMarkdown } from "./transfer.js";

export class Bar {
  /** `acts`: sidebar, create, remove, import. */
  constructor(session, acts) {
    this.session = session;
    this.acts = acts;
    this.title = el("h1", { class: "title", dir: "auto" });
    this.title.addEventListener("dblclick", () => this.rename());
    const sidebar = el("button", { type: "button", class: "quiet", id: "sidebar-button", "aria-label": "Conversations", "aria-controls": "sidebar", on: { click: () => acts.sidebar() } }, icon("menu"));
    const create = el("button", { type: "button", class: "quiet create", "aria-label": "New chat", title: "New chat", on: { click: () => acts.create() } }, icon("plus"));
    const more = el("button", { type: "button", class: "quiet", "aria-label": "More", title: "More" }, icon("more"));
    byId("bar").append(sidebar, this.title, create, newMenu(more, () => this.entries()));
    session.addEventListener("shown", () => this.draw());
    session.addEventListener("list", () => this.draw());
    this.draw();
  }

  draw() {
    const { current } = this.session;
    this.title.textContent = current ? current.title || "Untitled" : "";
    document.title = current?.title ? `${current.title} · halfbyte` : "halfbyte";
  }

  entries() {
    const { current } = this.session;
    const bring = { label: "Import…", act: () => this.acts.import() };
    if (!current) return [bring];
    return [
      { label: "Rename", act: () => this.rename() },
      { label: "Export as Markdown", act: () => exportMarkdown(current) },
      { label: "Export as JSON", act: () => exportJson(current) },
      bring,
      { label: "Delete", act: () => this.acts.remove(current), danger: true },
    ];
  }

  /** Turn the title into a field. */
  rename() {
    const { current } = this.session;
    if (!current || !this.title.isConnected) return;
    const field = el("input", { class: "title", value: current.title, "aria-label": "Title", maxlength: "200", dir: "auto" });
    let done = false;
    const finish = (keep) => {
      if (done) return;
      done = true;
      if (keep) this.session.rename(current, field.value);
      field.replaceWith(this.title);
      this.draw();
    };
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== "Escape") return;
      event.stopPropagation();
      finish(event.key === "Enter" && !event.isComposing);
    });
    field.addEventListener("blur", () => finish(true));
    this.title.replaceWith(field);
    field.focus();
    field.select();
  }
}
