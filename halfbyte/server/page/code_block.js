// A block of code: its language, a button that copies it, and the code itself.

import { copyButton } from "./copy.js";
import { el } from "./dom.js";
import { highlight } from "./highlight.js";

export function newCodeBlock(block, piece) {
  const code = el("code");
  const copy = copyButton("Copy code", () => code.textContent, "Copy");
  const head = el("figcaption", {}, el("span", { class: "language" }), copy);
  const box = el("figure", { class: "code" }, head, el("pre", { tabindex: "0" }, code));
  fillCode(box, block, piece);
  return box;
}

export function fillCode(box, { language, lines }, piece) {
  const code = box.querySelector("code");
  box.querySelector(".language").textContent = language || "text";
  box.querySelector("pre").setAttribute("aria-label", language ? `Code in ${language}` : "Code");
  const source = lines.map((line) => line.text).join("\n");
  code.replaceChildren();
  let i = 0;
  let start = 0; // where lines[i] begins in `source`
  for (const [kind, from, to] of highlight(source, language)) {
    for (let at = from; at < to; ) {
      while (at > start + lines[i].text.length) start += lines[i++].text.length + 1;
      const end = Math.min(to, start + lines[i].text.length);
      if (end > at) code.append(dressed(kind, piece(source.slice(at, end), lines[i].at + at - start)));
      if (end < to) code.append("\n");
      at = end + 1;
    }
  }
}

function dressed(kind, node) {
  return kind ? el("span", { class: `code-${kind}` }, node) : node;
}
