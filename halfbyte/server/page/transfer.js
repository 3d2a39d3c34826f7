// Conversations as files: Markdown to read, JSON to keep and to read back in.

import { newId, pathOf, readConversation } from "./conversation.js";
import { el } from "./dom.js";

const LARGEST = 20_000_000;

export function exportMarkdown(conversation) {
  const parts = [`# ${conversation.title || "Conversation"}`];
  if (conversation.system.trim()) parts.push(`**System**\n\n${conversation.system}`);
  for (const { role, text } of pathOf(conversation)) parts.push(`**${role === "user" ? "You" : "Answer"}**\n\n${text}`);
  download(`${fileName(conversation)}.md`, "text/markdown", `${parts.join("\n\n")}\n`);
}

export function exportJson(conversation) {
  download(`${fileName(conversation)}.json`, "application/json", `${JSON.stringify(conversation, null, 2)}\n`);
}

/** Ask for a file; the conversation in it, under an id of its own, or null. */
export function importJson() {
  return new Promise((resolve) => {
    const field = el("input", { type: "file", accept: ".json,application/json" });
    field.addEventListener("cancel", () => resolve(undefined));
    field.addEventListener("change", async () => resolve(await read(field.files[0])));
    field.click();
  });
}

async function read(file) {
  if (!file || file.size > LARGEST) return null;
  try {
    const conversation = readConversation(JSON.parse(await file.text()));
    return conversation && { ...conversation, id: newId(), updated: Date.now() };
  } catch {
    return null;
  }
}

function fileName({ title, id }) {
  const plain = title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "").slice(0, 50);
  return plain || `conversation-${id.slice(0, 8)}`;
}

function download(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = el("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
