// A conversation: a tree of messages, since an edited question or another try at an answer keeps what was there.
// `leaf` is the last message of the branch that is shown.

const TITLE = 60;

export function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(12)); // randomUUID is missing on plain HTTP from elsewhere
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function newConversation(system = "") {
  const now = Date.now();
  return { version: 1, id: newId(), title: "", created: now, updated: now, system, nodes: {}, leaf: null };
}

/** Add a message after `parent` and show it. */
export function addMessage(conversation, parent, role, text = "") {
  const node = { id: newId(), parent, role, text, created: Date.now() };
  conversation.nodes[node.id] = node;
  conversation.leaf = node.id;
  conversation.updated = node.created;
  if (!conversation.title && role === "user") conversation.title = titleOf(text);
  return node;
}

function titleOf(text) {
  const line = text.trim().split("\n")[0].trim();
  return line.length > TITLE ? `${[...line].slice(0, TITLE).join("").trimEnd()}…` : line;
}

/** The messages shown, first to last. */
export function pathOf(conversation) {
  const path = [];
  for (let id = conversation.leaf; id !== null; id = conversation.nodes[id].parent) path.push(conversation.nodes[id]);
  return path.reverse();
}

/** All messages that stand where `node` stands, oldest first. */
export function siblingsOf(conversation, node) {
  const all = Object.values(conversation.nodes).filter((other) => other.parent === node.parent);
  return all.sort((a, b) => a.created - b.created || (a.id < b.id ? -1 : 1));
}

/** Show the branch of `node`, down to its newest message. */
export function showBranch(conversation, node) {
  const children = new Map();
  for (const other of Object.values(conversation.nodes)) {
    const before = children.get(other.parent);
    if (!before || before.created <= other.created) children.set(other.parent, other);
  }
  let last = node;
  while (children.has(last.id)) last = children.get(last.id);
  conversation.leaf = last.id;
}

/** What the server is sent: answers without their thinking, and none that stayed empty. */
export function messagesFor(conversation, last) {
  const messages = conversation.system.trim() ? [{ role: "system", content: conversation.system }] : [];
  const path = [];
  for (let id = last; id !== null; id = conversation.nodes[id].parent) path.push(conversation.nodes[id]);
  for (const { role, text } of path.reverse()) if (text || role === "user") messages.push({ role, content: text });
  return messages;
}

/** A stored or imported conversation, or null for what is none. Only what is known is kept, of the right kind. */
export function readConversation(value) {
  if (!isObject(value) || value.version !== 1 || !isId(value.id) || !isObject(value.nodes)) return null;
  const nodes = {};
  for (const [id, node] of Object.entries(value.nodes)) {
    const read = isId(id) ? readNode(id, node) : null;
    if (read) nodes[id] = read;
  }
  const conversation = {
    version: 1, id: value.id, title: text(value.title).slice(0, 200), created: time(value.created),
    updated: time(value.updated), system: text(value.system), nodes, leaf: null,
  };
  dropStrays(conversation);
  if (typeof value.leaf === "string" && Object.hasOwn(nodes, value.leaf)) conversation.leaf = value.leaf;
  else showNewest(conversation);
  return conversation;
}

function readNode(id, node) {
  if (!isObject(node) || (node.role !== "user" && node.role !== "assistant")) return null;
  const read = { id, parent: isId(node.parent) ? node.parent : null, role: node.role, text: text(node.text), created: time(node.created) };
  for (const name of ["thinking", "finish", "error", "model"]) if (typeof node[name] === "string") read[name] = node[name];
  for (const name of ["thought_ms", "prompt_tokens", "completion_tokens", "rate", "first_s"]) {
    if (Number.isFinite(node[name])) read[name] = node[name];
  }
  if (Array.isArray(node.tokens) && node.tokens.every(isToken)) read.tokens = node.tokens;
  return read;
}

function isToken(token) {
  const [spelt, logprob, top] = Array.isArray(token) ? token : [];
  const entry = (pair) => Array.isArray(pair) && typeof pair[0] === "string" && Number.isFinite(pair[1]);
  return typeof spelt === "string" && Number.isFinite(logprob) && Array.isArray(top) && top.every(entry);
}

/** Take out messages that hang on none, or in a ring. */
function dropStrays({ nodes }) {
  const rooted = new Set();
  const children = groupByParent(nodes);
  for (const todo = [null]; todo.length > 0; ) {
    for (const node of children.get(todo.pop()) ?? []) {
      rooted.add(node.id);
      todo.push(node.id);
    }
  }
  for (const id of Object.keys(nodes)) if (!rooted.has(id)) delete nodes[id];
}

function groupByParent(nodes) {
  const groups = new Map();
  for (const node of Object.values(nodes)) {
    if (groups.has(node.parent)) groups.get(node.parent).push(node);
    else groups.set(node.parent, [node]);
  }
  return groups;
}

function showNewest(conversation) {
  const [root] = siblingsOf(conversation, { parent: null }).slice(-1);
  if (root) showBranch(conversation, root);
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isId = (value) => typeof value === "string" && /^[0-9a-f]{24}$/.test(value);
const text = (value) => (typeof value === "string" ? value : "");
const time = (value) => (Number.isFinite(value) ? value : 0);
