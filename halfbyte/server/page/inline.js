// Markdown, second half: the text of one block to nodes. `lines` as in blocks.js; `piece(text, at)` makes the node of
// a run of plain text. Time is linear in the text but for adversarial stars, which openersFloor keeps near it.

import { safeAddress } from "./links.js";

const DEEPEST = 24;
const LONGEST_TICKS = 16;
const LONGEST_FORMULA = 1000;
const PUNCTUATION = /[!-/:-@[-`{-~]/;
const TARGET = /\(\s{0,9}(?:<([^<>\n]{0,2000})>|([^\s<>()]{0,2000}(?:\([^\s<>()]{0,500}\)[^\s<>()]{0,500}){0,4}))(?:\s{1,9}(?:"[^"\n]{0,500}"|'[^'\n]{0,500}'))?\s{0,9}\)/y;
const AUTO = /<((?:https?:\/\/|mailto:)[^\s<>]{1,2000})>/y;
const BARE = /https?:\/\/[^\s<>"`]{1,2000}/y;
const ENTITY = /&(?:amp|lt|gt|quot|apos|nbsp|#39);/y;
const ENTITIES = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'", "&#39;": "'", "&nbsp;": "\u00a0" };
const SPECIAL = /[\\`*_~[\]!<&\n]|https?:\/\//g;
const TAGS = { "*": ["em", "strong"], _: ["em", "strong"], "~": [null, "del"] };

export function renderInline(lines, parent, piece) {
  const text = lines.map((line) => line.text).join("\n");
  build(pair(scan(text)), parent, text, placer(lines, piece));
}

/** Text runs in the order of the source, each with its place there. */
function placer(lines, piece) {
  let line = 0;
  let start = 0;
  return (shown, from) => {
    while (line + 1 < lines.length && from > start + lines[line].text.length) start += lines[line++].text.length + 1;
    return piece(shown, lines[line].at + from - start);
  };
}

/** Items: text and code {from, to}, marks {mark, count}, brackets, breaks, links with what they need. */
function scan(text) {
  const items = [];
  const brackets = [];
  const noTicks = new Set();
  let from = 0;
  const flush = (to) => {
    if (to > from) items.push({ kind: "text", from, to });
    from = Math.max(from, to);
  };
  SPECIAL.lastIndex = 0;
  for (let found = SPECIAL.exec(text); found; found = SPECIAL.exec(text)) {
    const at = found.index;
    const read = readSpecial(text, at, { items, brackets, noTicks, flush });
    if (read.items) {
      flush(at);
      items.push(...read.items);
      from = read.end;
    }
    SPECIAL.lastIndex = read.end;
  }
  flush(text.length);
  return items;
}

/** What begins at a special character: {items?, end}; without items it is plain text up to `end`. */
function readSpecial(text, at, state) {
  switch (text[at]) {
    case "\\": return readEscape(text, at);
    case "`": return readCode(text, at, state.noTicks);
    case "*": case "_": case "~": return readMark(text, at);
    case "!": return text[at + 1] === "[" ? readOpening(at, at + 2, state.brackets, true) : { end: at + 1 };
    case "[": return readOpening(at, at + 1, state.brackets, false);
    case "]": return readClosing(text, at, state);
    case "<": return readAuto(text, at);
    case "&": return readEntity(text, at);
    case "\n": return { items: [{ kind: "break" }], end: at + 1 };
    default: return readBare(text, at);
  }
}

function readEscape(text, at) {
  const next = text[at + 1] ?? "";
  if (next === "(") {
    const end = at + text.slice(at, at + LONGEST_FORMULA).indexOf("\\)");
    if (end > at) return { items: [{ kind: "math", from: at, to: end + 2 }], end: end + 2 };
  }
  if (next === "\n") return { items: [{ kind: "break" }], end: at + 2 };
  if (PUNCTUATION.test(next)) return { items: [{ kind: "text", from: at + 1, to: at + 2 }], end: at + 2 };
  return { end: at + 1 };
}

function readCode(text, at, noTicks) {
  const count = runAt(text, at, "`");
  const begin = at + count;
  if (count > LONGEST_TICKS || noTicks.has(count)) return { end: begin };
  for (let end = text.indexOf("`", begin); end >= 0; ) {
    const closing = runAt(text, end, "`");
    if (closing === count) return { items: [codeItem(text, begin, end)], end: end + count };
    end = text.indexOf("`", end + closing);
  }
  noTicks.add(count);
  return { end: begin };
}

function codeItem(text, from, to) {
  const padded = text[from] === " " && text[to - 1] === " " && text.slice(from, to).trim() !== "";
  return { kind: "code", from: padded ? from + 1 : from, to: padded ? to - 1 : to };
}

function readMark(text, at) {
  const mark = text[at];
  const count = runAt(text, at, mark);
  const end = at + count;
  if (count > 64 || (mark === "~" && count !== 2)) return { end };
  const before = text[at - 1] ?? " ";
  const after = text[end] ?? " ";
  const left = !/\s/.test(after) && (!isPunctuation(after) || /\s/.test(before) || isPunctuation(before));
  const right = !/\s/.test(before) && (!isPunctuation(before) || /\s/.test(after) || isPunctuation(after));
  const opens = left && (mark !== "_" || !right || isPunctuation(before));
  const closes = right && (mark !== "_" || !left || isPunctuation(after));
  return { items: [{ kind: "mark", mark, count, from: at, opens, closes, before: [], after: [] }], end };
}

function isPunctuation(letter) {
  return /[\p{P}\p{S}]/u.test(letter);
}

function runAt(text, at, letter) {
  let end = at;
  while (text[end] === letter) end++;
  return end - at;
}

function readOpening(at, end, brackets, image) {
  const item = { kind: "bracket", from: at, to: end, image, address: undefined };
  brackets.push(item);
  return { items: [item], end };
}

function readClosing(text, at, { items, brackets, flush }) {
  const opening = brackets.pop();
  TARGET.lastIndex = at + 1;
  const target = opening && TARGET.exec(text);
  if (!target) return { end: at + 1 };
  flush(at);
  opening.address = target[1] ?? target[2];
  const first = items.lastIndexOf(opening);
  pair(items, first + 1);
  for (const item of items.slice(first + 1)) if (item.kind === "mark") item.paired = true;
  if (!opening.image) brackets.length = 0; // no link within a link
  return { items: [{ kind: "close" }], end: TARGET.lastIndex };
}

function readAuto(text, at) {
  AUTO.lastIndex = at;
  const found = AUTO.exec(text);
  if (!found) return { end: at + 1 };
  return { items: linked(found[1], at + 1, at + 1 + found[1].length), end: at + found[0].length };
}

function readBare(text, at) {
  BARE.lastIndex = at;
  const found = /\w/.test(text[at - 1] ?? " ") ? null : BARE.exec(text);
  if (!found) return { end: at + 4 };
  let address = found[0].replace(/[.,;:!?*_~'\]]{1,99}$/, "");
  if (address.endsWith(")") && !address.includes("(")) address = address.slice(0, -1);
  return { items: linked(address, at, at + address.length), end: at + address.length };
}

function linked(address, from, to) {
  return [{ kind: "bracket", from, to: from, address }, { kind: "text", from, to }, { kind: "close" }];
}

function readEntity(text, at) {
  ENTITY.lastIndex = at;
  const found = ENTITY.exec(text);
  if (!found) return { end: at + 1 };
  const end = at + found[0].length;
  return { items: [{ kind: "text", from: at, to: end, shown: ENTITIES[found[0]] }], end };
}

/** Match closing marks with opening ones, as CommonMark does. */
function pair(items, first = 0) {
  const marks = items.slice(first).filter((item) => item.kind === "mark" && !item.paired);
  const openers = [];
  const floors = {};
  for (const closer of marks) {
    while (closer.closes && closer.count > 0) {
      const key = `${closer.mark}${closer.opens}${closer.count % 3}`;
      const at = findOpener(openers, closer, floors[key] ?? 0);
      if (at < 0) {
        floors[key] = openers.length;
        break;
      }
      join(openers[at], closer);
      openers.length = openers[at].count > 0 ? at + 1 : at;
      for (const other in floors) floors[other] = Math.min(floors[other], openers.length);
    }
    if (closer.opens && closer.count > 0) openers.push(closer);
  }
  return items;
}

function findOpener(openers, closer, floor) {
  for (let i = openers.length - 1; i >= floor; i--) {
    const opener = openers[i];
    const odd = (opener.closes || closer.opens) && (opener.count + closer.count) % 3 === 0;
    if (opener.mark === closer.mark && !(odd && (opener.count % 3 || closer.count % 3))) return i;
  }
  return -1;
}

function join(opener, closer) {
  const used = Math.min(opener.count, closer.count, 2);
  const tag = TAGS[opener.mark][used - 1];
  opener.count -= used;
  closer.count -= used;
  closer.skipped = (closer.skipped ?? 0) + used;
  opener.after.unshift(tag);
  closer.before.push(tag);
}

/** Nodes of items; what would nest deeper than DEEPEST stays where it is, without an element of its own. */
function build(items, parent, text, place) {
  const stack = [parent];
  let hidden = 0;
  const open = (element) => {
    if (stack.length > DEEPEST || !element) return void hidden++;
    stack.at(-1).append(element);
    stack.push(element);
  };
  const close = () => (hidden > 0 ? hidden-- : stack.pop());
  const write = (from, to, shown = text.slice(from, to)) => shown && stack.at(-1).append(place(shown, from));
  for (const item of items) {
    if (item.kind === "text") write(item.from, item.to, item.shown);
    else if (item.kind === "break") stack.at(-1).append(document.createElement("br"));
    else if (item.kind === "code" || item.kind === "math") {
      open(document.createElement("code"));
      if (item.kind === "math") stack.at(-1).className = "math";
      for (const [from, to] of linesWithin(text, item)) write(from, to);
      close();
    } else if (item.kind === "bracket") {
      if (item.address === undefined) write(item.from, item.to);
      else open(linkTo(item));
    } else if (item.kind === "close") close();
    else {
      item.before.forEach(close);
      const rest = item.from + (item.skipped ?? 0);
      write(rest, rest + item.count);
      item.after.forEach((tag) => open(tag && document.createElement(tag)));
    }
  }
}

/** Pieces of a code span that goes over lines: a line break counts as a space. */
function linesWithin(text, { from, to }) {
  const pieces = [];
  for (let at = from; at < to; ) {
    const end = text.indexOf("\n", at);
    const stop = end < 0 || end >= to ? to : end;
    pieces.push([at, stop]);
    at = stop + 1;
  }
  return pieces;
}

/** A link, in a new tab and without a trace of where it came from; a span where its address is not safe. */
function linkTo({ address, image }) {
  const safe = safeAddress(address);
  const element = document.createElement(safe ? "a" : "span");
  if (safe) {
    element.href = safe;
    element.target = "_blank";
    element.rel = "noopener noreferrer nofollow";
    element.title = safe;
  } else {
    element.className = "refused-link";
    element.title = "This link was left out: its address is not a web address";
  }
  if (image) element.classList.add("image-link"); // an image would be fetched from elsewhere, and tell that it was read
  return element;
}
