// Puts the parts of the page together.

import { Bar } from "./bar.js";
import { Composer } from "./composer.js";
import { byId } from "./dom.js";
import { Session } from "./session.js";
import { SettingsPanel } from "./settings_panel.js";
import { listenForShortcuts } from "./shortcuts.js";
import { Sidebar } from "./sidebar.js";
import { Store } from "./store.js";
import { Thread } from "./thread.js";
import { toast } from "./toast.js";
import { importJson } from "./transfer.js";

const store = new Store(toast);
const session = new Session(store);
const settings = new SettingsPanel(session);
const write = () => byId("composer-text").focus();

const acts = {
  create() {
    session.open(null);
    write();
  },
  remove(conversation) {
    session.remove(conversation);
    toast(`Deleted “${conversation.title || "Untitled"}”`, { label: "Undo", act: () => session.restore(conversation) });
  },
  async import() {
    const conversation = await importJson();
    if (conversation) session.restore(conversation);
    else if (conversation === null) toast("This file holds no conversation of this page.");
  },
  step(event) {
    const all = store.list();
    const at = all.indexOf(session.current) + (event.key === "ArrowDown" ? 1 : -1);
    if (all[at]) session.open(all[at]);
  },
  settings: () => settings.open(),
  shortcuts: () => help.showModal(),
  help: () => help.showModal(),
  sidebar: () => sidebar.toggle(),
  rename: () => bar.rename(),
  stop: () => session.stop(),
  isRunning: () => session.isRunning(),
  write,
};

const sidebar = new Sidebar(session, acts);
const bar = new Bar(session, acts);
new Thread(session, () => settings.open("#set-key"));
new Composer(session);
const help = listenForShortcuts(acts);

session.addEventListener("settings", () => (document.documentElement.dataset.theme = session.settings.theme));
session.addEventListener("refused", (event) => {
  if (!session.current) return; // the page itself says so
  toast(event.detail.message, { label: "Enter the key", act: () => settings.open("#set-key") });
});
window.addEventListener("pagehide", () => session.leave());
window.addEventListener("storage", ({ key }) => {
  const shown = session.current?.id;
  if (key?.endsWith(shown ?? "-") && session.isRunning()) return; // this tab knows better
  if (!store.refresh(key)) return;
  if (shown && key.endsWith(shown)) session.open(store.conversations.get(shown) ?? null);
  else session.emit("list");
});

// The address names the conversation: a reload stays in it, and the way back leads to the one before.
session.addEventListener("shown", () => {
  const hash = session.current ? `#${session.current.id}` : "";
  if (location.hash !== hash) history.pushState(null, "", hash || location.pathname + location.search);
});
const openAddressed = () => session.open(store.conversations.get(location.hash.slice(1)) ?? null);
window.addEventListener("popstate", openAddressed);

openAddressed();
session.loadModels();
if (matchMedia("(pointer: fine)").matches) write();
