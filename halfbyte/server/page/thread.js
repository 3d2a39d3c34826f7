// The messages of the branch that is shown. It follows an answer that grows, until one scrolls up.

import { announce } from "./announcer.js";
import { pathOf } from "./conversation.js";
import { byId, el } from "./dom.js";
import { icon, nibble } from "./icons.js";
import { MessageView } from "./message.js";
import { watchTokens } from "./probabilities.js";

const NEAR = 64; // pixels from the end within which new text keeps being followed
const LONGEST_SAID = 1200;

export class Thread {
  /** `enterKey` leads to where an API key is entered. */
  constructor(session, enterKey) {
    this.session = session;
    this.enterKey = enterKey;
    this.area = byId("thread");
    this.scroller = byId("scroller");
    this.views = new Map();
    this.following = true;
    this.dirty = new Set();
    this.acts = {
      retry: (node) => session.retry(node),
      edit: (node, text) => session.resend(node, text),
      show: (node) => session.show(node),
      settings: () => session.settings,
    };
    this.jump = el("button", { type: "button", class: "jump", "aria-label": "To the newest message", hidden: true, on: { click: () => this.follow() } }, icon("down"));
    byId("dock").append(this.jump);
    this.scroller.addEventListener("scroll", () => this.noteScroll(), { passive: true });
    // A phone's keyboard takes half of the window: what was at its end stays there.
    new ResizeObserver(() => this.following && this.toEnd()).observe(this.scroller);
    watchTokens(this.area);
    session.addEventListener("shown", () => this.draw());
    session.addEventListener("progress", ({ detail }) => this.grow(detail));
    session.addEventListener("models", () => this.session.current ?? this.draw());
    session.addEventListener("settings", () => this.redress());
  }

  draw() {
    const { current } = this.session;
    const path = current ? pathOf(current) : [];
    const before = this.views;
    this.views = new Map();
    for (const node of path) this.views.set(node.id, this.kept(before.get(node.id), node, current));
    const views = [...this.views.values()];
    this.area.replaceChildren(...this.opening(current, path), ...views.map((view) => view.element));
    for (const [i, view] of views.entries()) view.update(this.session.isGrowing(view.node), i === views.length - 1);
    this.shownId = current?.id ?? null;
    this.follow();
  }

  /** A view lives on while its conversation is shown; its foot tells of other versions, which may be new. */
  kept(view, node, conversation) {
    if (!view || view.node !== node) return new MessageView(node, conversation, this.acts);
    view.foot.replaceChildren();
    return view;
  }

  opening(current, path) {
    if (path.length === 0) return [welcome(this.session, this.enterKey)];
    if (!current.system.trim()) return [];
    const said = el("div", { class: "body", text: current.system });
    return [el("details", { class: "system" }, el("summary", { text: "System message" }), said)];
  }

  /** Draw a message again with the next frame: tokens may come faster than frames. */
  grow(node) {
    if (this.dirty.size === 0) nextFrame(() => this.drawDirty());
    this.dirty.add(node);
  }

  drawDirty() {
    for (const node of this.dirty) {
      const growing = this.session.isGrowing(node);
      const view = this.views.get(node.id);
      if (view?.node === node) {
        view.update(growing, this.session.current.leaf === node.id);
        if (!growing) announce(endOf(node));
      }
    }
    this.dirty.clear();
    if (this.following) this.toEnd();
    else this.noteScroll();
  }

  redress() {
    for (const view of this.views.values()) if (!view.user && !this.session.isGrowing(view.node)) view.dressTokens();
  }

  noteScroll() {
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    this.following = scrollHeight - scrollTop - clientHeight < NEAR;
    this.jump.hidden = this.following;
  }

  follow() {
    this.following = true;
    this.jump.hidden = true;
    this.toEnd();
  }

  toEnd() {
    this.scroller.scrollTop = this.scroller.scrollHeight;
  }
}

/** The next frame, or soon in a tab that is not seen and draws no frames. */
function nextFrame(act) {
  if (document.hidden) setTimeout(act, 200);
  else requestAnimationFrame(act);
}

function endOf(node) {
  if (node.finish === "stopped") return "Stopped";
  if (node.finish === "error") return "The answer failed";
  return `Answer: ${node.text.slice(0, LONGEST_SAID)}`;
}

function welcome(session, enterKey) {
  const { model, modelsError } = session;
  const box = el("div", { class: "welcome" }, nibble());
  const say = (title, text) => box.append(el("h1", { text: title }), el("p", { text }));
  const offer = (label, act) => box.append(el("button", { type: "button", class: "small strong", text: label, on: { click: act } }));
  if (modelsError?.wantsKey) {
    say("This server asks for a key", modelsError.message);
    offer("Enter the key", enterKey);
  } else if (modelsError) {
    say("No answer from the server", modelsError.message);
    offer("Try again", () => session.loadModels());
  } else say(model ? shortName(model.id) : "halfbyte", "It runs on this server and nowhere else. Conversations stay in this browser.");
  return box;
}

/** A model's name without the folders before it. */
export function shortName(id) {
  return id.split(/[/\\]/).pop().replace(/\.gguf$/i, "") || id;
}
