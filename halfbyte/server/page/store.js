// Conversations and settings in this browser's storage, a key each. It may be shut off, full, or hold garbage of
// others; what cannot be stored lives on in memory until the page is closed.

import { readConversation } from "./conversation.js";

const PREFIX = "halfbyte.conversation.";
const SETTINGS = "halfbyte.settings";

export class Store {
  /** `onTrouble(message)` hears once of each way in which something could not be kept. */
  constructor(onTrouble = () => {}) {
    this.onTrouble = onTrouble;
    this.conversations = new Map();
    this.unreadable = [];
    this.told = new Set();
    this.storage = openStorage();
    if (!this.storage) this.tell("This browser keeps nothing for this page: conversations last until it is closed.");
    for (const key of this.keys()) this.read(key);
  }

  /** Conversations, the last one used first. */
  list() {
    return [...this.conversations.values()].sort((a, b) => b.updated - a.updated || (a.id < b.id ? 1 : -1));
  }

  save(conversation) {
    this.conversations.set(conversation.id, conversation);
    if (this.write(PREFIX + conversation.id, JSON.stringify(conversation))) return;
    if (this.storage && this.shed() && this.write(PREFIX + conversation.id, JSON.stringify(conversation))) {
      this.tell("The browser's storage is full: token probabilities of older answers were dropped.");
    } else if (this.storage) {
      this.tell("The browser's storage is full: what is new is lost when the page is closed. Export or delete conversations.");
    }
  }

  remove(id) {
    this.conversations.delete(id);
    this.storage?.removeItem(PREFIX + id);
    this.told.clear();
  }

  /** Read again what another tab wrote under `key`; whether it was a conversation. */
  refresh(key) {
    if (!key?.startsWith(PREFIX)) return false;
    this.conversations.delete(key.slice(PREFIX.length));
    this.read(key);
    return true;
  }

  /** Delete what no conversation could be read from. */
  removeUnreadable() {
    for (const key of this.unreadable.splice(0)) this.storage?.removeItem(key);
  }

  settings() {
    return parse(this.get(SETTINGS)) ?? {};
  }

  saveSettings(settings) {
    this.write(SETTINGS, JSON.stringify(settings));
  }

  keys() {
    const count = this.storage?.length ?? 0;
    const keys = Array.from({ length: count }, (_, i) => this.storage.key(i));
    return keys.filter((key) => key?.startsWith(PREFIX));
  }

  read(key) {
    const written = this.get(key);
    if (written === null) return;
    const conversation = readConversation(parse(written));
    if (conversation && PREFIX + conversation.id === key) this.conversations.set(conversation.id, conversation);
    else if (!this.unreadable.includes(key)) this.unreadable.push(key);
  }

  get(key) {
    try {
      return this.storage?.getItem(key) ?? null;
    } catch {
      return null;
    }
  }

  write(key, written) {
    try {
      this.storage?.setItem(key, written);
      return this.storage !== null;
    } catch {
      return false;
    }
  }

  /** Make room: probabilities are the bulk of a conversation, and what is missed least. */
  shed() {
    let found = false;
    for (const conversation of this.list().reverse()) {
      const heavy = Object.values(conversation.nodes).filter((node) => node.tokens);
      for (const node of heavy) delete node.tokens;
      if (heavy.length > 0) found = this.write(PREFIX + conversation.id, JSON.stringify(conversation)) || found;
    }
    return found;
  }

  tell(message) {
    if (this.told.has(message)) return;
    this.told.add(message);
    this.onTrouble(message);
  }
}

/** This browser's storage, or null where it is shut off. */
function openStorage() {
  try {
    const storage = window.localStorage;
    storage.getItem(SETTINGS);
    return storage;
  } catch {
    return null;
  }
}

function parse(written) {
  try {
    const value = JSON.parse(written);
    return typeof value === "object" && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}
