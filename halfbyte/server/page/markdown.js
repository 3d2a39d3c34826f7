// Blocks to elements, and `Markdown`: a text that grows, of which only the end is drawn again.

import { linesOf, parseBlocks } from "./blocks.js";
import { fillCode, newCodeBlock } from "./code_block.js";
import { el } from "./dom.js";
import { renderInline } from "./inline.js";

const plain = (text) => document.createTextNode(text);

/** Shows a source text inside `parent`; `piece(text, at)` makes the nodes of its plain text. */
export class Markdown {
  constructor(parent, piece = plain) {
    this.parent = parent;
    this.piece = piece;
    this.source = "";
    this.settled = 0; // where the last block begins: all before it can no longer change
    this.open = []; // the blocks from there on, with their elements
  }

  /** Show `source`, which mostly begins with what is shown already. */
  update(source) {
    if (source === this.source) return;
    if (!source.startsWith(this.source)) this.clear();
    this.source = source;
    const blocks = parseBlocks(linesOf(source, this.settled));
    if (this.open.length === 1 && blocks.length === 1 && refresh(this.open[0], blocks[0], this.piece)) return;
    for (const { element } of this.open) element.remove();
    this.open = blocks.map((block) => ({ block, element: drawBlock(block, this.piece) }));
    this.parent.append(...this.open.map(({ element }) => element));
    this.open.splice(0, blocks.length - unsettled(blocks));
    if (this.open.length > 0) this.settled = this.open[0].block.at;
  }

  /** Draw all of it anew, with other pieces. */
  redraw(piece) {
    const { source } = this;
    this.clear();
    this.piece = piece ?? plain;
    this.update(source);
  }

  clear() {
    this.parent.replaceChildren();
    this.source = "";
    this.settled = 0;
    this.open = [];
  }
}

/** How many blocks at the end may still change: a number after a list may become its next item. */
function unsettled(blocks) {
  const [before, last] = blocks.slice(-2);
  const number = last?.kind === "paragraph" && last.lines.length === 1 && /^ *\d{1,9}$/.test(last.lines[0].text);
  return before?.kind === "list" && number ? 2 : Math.min(blocks.length, 1);
}

/** Code that grows keeps its element, so that its button and its place in a scrolled box stay. */
function refresh(open, block, piece) {
  if (open.block.kind !== "code" || block.kind !== "code" || open.block.language !== block.language) return false;
  fillCode(open.element, block, piece);
  open.block = block;
  return true;
}

function drawBlock(block, piece) {
  switch (block.kind) {
    case "code": return newCodeBlock(block, piece);
    case "heading": return withInline(el(`h${Math.min(block.level + 2, 6)}`, { class: `level-${block.level}` }), block.lines, piece);
    case "rule": return el("hr");
    case "quote": return withBlocks(el("blockquote"), block.blocks, piece);
    case "list": return drawList(block, piece);
    case "table": return drawTable(block, piece);
    case "math": return drawMath(block, piece);
    default: return withInline(el("p"), trimmed(block.lines), piece);
  }
}

function withInline(element, lines, piece) {
  renderInline(lines, element, piece);
  return element;
}

function withBlocks(element, blocks, piece) {
  for (const block of blocks) element.append(drawBlock(block, piece));
  return element;
}

/** Lines of a paragraph: spaces at their beginnings and ends mean nothing. */
function trimmed(lines) {
  return lines.map(({ text, at }) => ({ text: text.trim(), at: at + text.length - text.trimStart().length }));
}

function drawList(block, piece) {
  const list = el(block.ordered ? "ol" : "ul", { start: block.ordered && block.start !== 1 ? block.start : null });
  for (const { done, blocks } of block.items) {
    const item = el("li", { class: done === null ? null : "task" });
    if (done !== null) item.append(el("input", { type: "checkbox", checked: done, disabled: true, "aria-label": done ? "done" : "open" }));
    for (const inner of blocks) {
      const tight = inner.kind === "paragraph" && !block.loose;
      if (tight) withInline(item, trimmed(inner.lines), piece);
      else item.append(drawBlock(inner, piece));
    }
    list.append(item);
  }
  return list;
}

function drawTable({ columns, head, rows }, piece) {
  const row = (cells, tag) => el("tr", {}, columns.map((side, i) => {
    const cell = el(tag, { class: side === "left" ? null : side, scope: tag === "th" ? "col" : null });
    return cells[i] ? withInline(cell, [cells[i]], piece) : cell;
  }));
  const body = el("tbody", {}, rows.map((cells) => row(cells, "td")));
  const table = el("table", {}, el("thead", {}, row(head, "th")), body);
  return el("div", { class: "table-box", tabindex: "0", role: "region", "aria-label": "Table" }, table);
}

function drawMath({ lines }, piece) {
  const box = el("pre", { class: "math" });
  lines.forEach(({ text, at }, i) => {
    if (i > 0) box.append("\n");
    if (text) box.append(piece(text, at));
  });
  return box;
}
