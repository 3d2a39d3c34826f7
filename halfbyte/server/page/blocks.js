// Markdown, first half: lines to blocks. A line is {text, at} with `at` its place in the source, so that what is
// shown can be traced back to the tokens it came from. Time is linear in the text; nesting ends at DEEPEST.

const DEEPEST = 12;
const FENCE = /^ {0,3}(`{3,}|~{3,})[ \t]*([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+|$)/;
const RULE = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const UNDERLINE = /^ {0,3}(={3,}|-{3,})[ \t]*$/; // shorter ones are the beginnings of lists while text streams in
const QUOTE = /^ {0,3}>[ ]?/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])(?:([ \t]+)(?=\S)|[ \t]*$)/;
const TASK = /^\[([ xX])\][ \t]+(?=\S)/;
const TABLE_RULE = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;
const MATH = { "$$": "$$", "\\[": "\\]" };

export function linesOf(source, from = 0) {
  const lines = [];
  let at = from;
  while (at < source.length) {
    let end = source.indexOf("\n", at);
    if (end < 0) end = source.length;
    const text = source.slice(at, end);
    lines.push({ text: text.endsWith("\r") ? text.slice(0, -1) : text, at });
    at = end + 1;
  }
  return lines;
}

const blank = (line) => line.text.trim() === "";
const cut = (line, count) => ({ text: line.text.slice(count), at: line.at + count });

/** Blocks of `lines`: {kind, at, ...} with `at` where the block begins in the source. */
export function parseBlocks(lines, depth = 0) {
  const blocks = [];
  let i = 0;
  while (i < lines.length) {
    if (blank(lines[i])) {
      i++;
      continue;
    }
    const [block, next] = readBlock(lines, i, depth);
    block.at = lines[i].at;
    blocks.push(block);
    i = next;
  }
  return blocks;
}

function readBlock(lines, i, depth) {
  const { text } = lines[i];
  const fence = FENCE.exec(text);
  if (fence) return readFence(lines, i, fence);
  if (HEADING.test(text)) return [headingOf(lines[i]), i + 1];
  if (RULE.test(text)) return [{ kind: "rule" }, i + 1];
  const math = mathOf(text);
  if (math) return readMath(lines, i, math);
  if (depth < DEEPEST && QUOTE.test(text)) return readQuote(lines, i, depth);
  if (depth < DEEPEST && ITEM.test(text)) return readList(lines, i, depth);
  if (isTable(lines, i)) return readTable(lines, i);
  return readParagraph(lines, i, depth);
}

function readFence(lines, i, fence) {
  const [, mark, info] = fence;
  const indent = lines[i].text.indexOf(mark);
  const body = [];
  let next = i + 1;
  let closed = false;
  for (; next < lines.length && !closed; next++) {
    const { text } = lines[next];
    const trimmed = text.trim();
    closed = trimmed.length >= mark.length && trimmed === mark[0].repeat(trimmed.length) && indentOf(text) < 4;
    if (!closed) body.push(cut(lines[next], Math.min(indent, /^ */.exec(text)[0].length)));
  }
  return [{ kind: "code", language: info.trim().split(/\s/)[0], lines: body, closed }, next];
}

function headingOf(line) {
  const [opening, marks] = HEADING.exec(line.text);
  const rest = cut(line, opening.length);
  const text = rest.text.trimEnd();
  const open = text.replace(/#+$/, "");
  const closed = open === "" || /[ \t]$/.test(open);
  return { kind: "heading", level: marks.length, lines: [{ text: closed ? open.trimEnd() : text, at: rest.at }] };
}

function mathOf(text) {
  const trimmed = text.trim();
  return Object.keys(MATH).find((mark) => trimmed.startsWith(mark));
}

/** Formulas are shown as written: Markdown would take their backslashes and stars for its own. */
function readMath(lines, i, mark) {
  const first = lines[i].text.trim();
  if (first.length > mark.length && first.endsWith(MATH[mark])) return [{ kind: "math", lines: [lines[i]] }, i + 1];
  const end = lines.findIndex((line, at) => at > i && (blank(line) || line.text.trim().endsWith(MATH[mark])));
  const next = end < 0 ? lines.length : blank(lines[end]) ? end : end + 1;
  return [{ kind: "math", lines: lines.slice(i, next) }, next];
}

function readQuote(lines, i, depth) {
  const inner = [];
  let next = i;
  for (; next < lines.length && !blank(lines[next]); next++) {
    const mark = QUOTE.exec(lines[next].text);
    if (!mark && startsBlock(lines[next].text)) break;
    inner.push(cut(lines[next], mark ? mark[0].length : 0));
  }
  return [{ kind: "quote", blocks: parseBlocks(inner, depth + 1) }, next];
}

function readList(lines, i, depth) {
  const [, , first] = ITEM.exec(lines[i].text);
  const ordered = /\d/.test(first);
  const items = [];
  let loose = false;
  let gap = false; // a blank line before the next item
  let next = i;
  while (next < lines.length) {
    const mark = ITEM.exec(lines[next].text);
    const same = mark && mark[2].at(-1) === first.at(-1) && /\d/.test(mark[2]) === ordered;
    if (!same || RULE.test(lines[next].text)) break;
    const [inner, after, gaps] = readItem(lines, next, mark);
    items.push(itemOf(inner, depth));
    loose ||= gaps || gap;
    gap = blank(lines[after - 1]);
    next = after;
  }
  return [{ kind: "list", ordered, start: ordered ? parseInt(first, 10) : 1, loose, items }, next];
}

/** The lines of an item with its indent off, where the next begins, and whether blank lines part its paragraphs. */
function readItem(lines, i, mark) {
  const content = mark[3] && mark[3].length <= 4 ? mark[0].length : mark[1].length + mark[2].length + 1;
  const inner = [cut(lines[i], Math.min(content, lines[i].text.length))];
  let next = i + 1;
  let gaps = false;
  for (; next < lines.length; next++) {
    const line = lines[next];
    const before = blank(lines[next - 1]);
    // Models often indent what belongs to an item by two or three columns less than its text begins at.
    const inside = indentOf(line.text) >= Math.min(content, 2);
    if (!blank(line) && !inside && (before || startsBlock(line.text))) break;
    if (!blank(line) && before && !ITEM.test(line.text.trimStart())) gaps = true;
    inner.push(inside ? unindent(line, content) : line);
  }
  return [inner, next, gaps];
}

function itemOf(lines, depth) {
  const task = TASK.exec(lines[0].text);
  const inner = task ? [cut(lines[0], task[0].length), ...lines.slice(1)] : lines;
  return { done: task ? task[1] !== " " : null, blocks: parseBlocks(inner, depth + 1) };
}

function isTable(lines, i) {
  return i + 1 < lines.length && lines[i].text.includes("|") && TABLE_RULE.test(lines[i + 1].text);
}

function readTable(lines, i) {
  const columns = cellsOf(lines[i + 1]).map(({ text }) => {
    const rule = text.trim();
    return rule.endsWith(":") ? (rule.startsWith(":") ? "centre" : "right") : "left";
  });
  const rows = [];
  let next = i + 2;
  for (; next < lines.length && !blank(lines[next]) && !startsBlock(lines[next].text); next++) {
    rows.push(cellsOf(lines[next]).slice(0, columns.length));
  }
  return [{ kind: "table", columns, head: cellsOf(lines[i]).slice(0, columns.length), rows }, next];
}

/** Cells of a row, each a line of its own; an escaped bar or one in a code span parts nothing. */
function cellsOf(line) {
  const cells = [];
  let from = line.text.length - line.text.trimStart().length;
  const end = line.text.trimEnd().length;
  if (line.text[from] === "|") from++;
  for (let i = from, code = false; i < end; i++) {
    if (line.text[i] === "\\") i++;
    else if (line.text[i] === "`") code = !code;
    else if (line.text[i] === "|" && !code) {
      cells.push(trimmed(line, from, i));
      from = i + 1;
    }
  }
  if (from < end) cells.push(trimmed(line, from, end));
  return cells;
}

function trimmed(line, from, to) {
  const text = line.text.slice(from, to);
  return { text: text.trim(), at: line.at + from + text.length - text.trimStart().length };
}

function readParagraph(lines, i, depth) {
  let next = i + 1;
  for (; next < lines.length && !blank(lines[next]); next++) {
    const { text } = lines[next];
    const under = UNDERLINE.exec(text);
    if (under) return [{ kind: "heading", level: under[1][0] === "=" ? 1 : 2, lines: lines.slice(i, next) }, next + 1];
    if (interrupts(text, depth) || isTable(lines, next)) break;
  }
  return [{ kind: "paragraph", lines: lines.slice(i, next) }, next];
}

function startsBlock(text, depth = 0) {
  if (FENCE.test(text) || HEADING.test(text) || RULE.test(text) || mathOf(text)) return true;
  return depth < DEEPEST && (QUOTE.test(text) || ITEM.test(text));
}

/** Whether a line ends the paragraph before it: a year at its beginning is no list. */
function interrupts(text, depth) {
  const item = ITEM.exec(text);
  return startsBlock(text, depth) && (!item || (item[3] && /^(?:[-*+]|1[.)])$/.test(item[2])) || RULE.test(text));
}

function indentOf(text) {
  let columns = 0;
  for (const letter of text) {
    if (letter === " ") columns++;
    else if (letter === "\t") columns += 4 - (columns % 4);
    else break;
  }
  return columns;
}

function unindent(line, columns) {
  let seen = 0;
  let i = 0;
  for (; i < line.text.length && seen < columns; i++) {
    if (line.text[i] === " ") seen++;
    else if (line.text[i] === "\t") seen += 4 - (seen % 4);
    else break;
  }
  return cut(line, i);
}
