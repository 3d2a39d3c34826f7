// Token probabilities on an answer: a tint for doubt, and a card with the alternatives for the token pointed at.

import { byId, el } from "./dom.js";
import { placesIn, tokenPiece } from "./tokens.js";

const MARGIN = 8;
const TOKENS = new WeakMap(); // from an element to its token

/** Pieces for the texts of an answer, as `Markdown` takes them. */
export function tokenPieces(node) {
  const thinking = node.thinking ?? "";
  const places = placesIn(thinking + node.text, node.tokens);
  const first = places.findIndex(([from]) => from >= thinking.length);
  const split = first < 0 ? places.length : first;
  const answer = places.slice(split).map(([from, to, token]) => [from - thinking.length, to - thinking.length, token]);
  return { thinking: tokenPiece(places.slice(0, split), dress), text: tokenPiece(answer, dress) };
}

function dress(text, token) {
  const share = Math.exp(token[1]);
  const doubt = share > 0.9 ? 0 : share > 0.6 ? 1 : share > 0.3 ? 2 : share > 0.1 ? 3 : 4;
  const element = el("span", { class: `token doubt-${doubt}`, text });
  TOKENS.set(element, token);
  return element;
}

/** Let cards appear over `area` by pointer, by touch and by arrow keys from a token that has the focus. */
export function watchTokens(area) {
  const card = el("div", { class: "token-card", id: "token-card", role: "tooltip", hidden: true });
  document.body.append(card);
  let shown = null;
  const show = (element) => {
    if (element === shown) return;
    shown?.classList.remove("pointed");
    shown = element;
    card.hidden = !element;
    if (!element) return;
    element.classList.add("pointed");
    fill(card, TOKENS.get(element));
    place(card, element);
  };
  const tokenAt = (event) => (event.target instanceof Element ? event.target.closest(".token") : null);
  area.addEventListener("pointerover", (event) => show(tokenAt(event)));
  area.addEventListener("pointerleave", () => show(null));
  area.addEventListener("click", (event) => show(tokenAt(event)));
  area.addEventListener("keydown", (event) => {
    const next = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const answer = event.target instanceof Element && event.target.closest(".dressed .body");
    if (event.key === "Escape" && shown) {
      event.stopPropagation();
      show(null);
    } else if (next && answer) {
      event.preventDefault();
      step(answer, next, show, shown);
    }
  });
  byId("scroller").addEventListener("scroll", () => show(null), { passive: true });
}

function step(answer, by, show, shown) {
  const tokens = [...answer.querySelectorAll(".token")];
  const at = tokens.indexOf(shown);
  const next = tokens[at < 0 ? 0 : Math.min(Math.max(at + by, 0), tokens.length - 1)];
  if (!next) return;
  next.scrollIntoView({ block: "nearest" });
  requestAnimationFrame(() => requestAnimationFrame(() => show(next))); // after the scrolling that would hide it
  answer.setAttribute("aria-describedby", "token-card");
}

function fill(card, [text, logprob, top]) {
  const others = top.filter(([other]) => other !== text);
  const rows = [[text, logprob, true], ...others.map(([other, value]) => [other, value, false])];
  rows.sort((a, b) => b[1] - a[1]);
  card.replaceChildren(...rows.map(([spelt, value, chosen]) => {
    const share = Math.exp(value);
    const bar = el("span", { class: "share-bar", "aria-hidden": "true" }, el("i"));
    bar.firstChild.style.width = `${share * 100}%`;
    return el("div", { class: chosen ? "row chosen" : "row" }, el("span", { class: "spelt", text: visible(spelt) }), bar, el("span", { class: "share", text: percent(share) }));
  }));
}

/** Spaces and breaks as signs. Marks that turn the direction of writing would turn the card as well. */
function visible(text) {
  if (text === "") return "part of a character";
  return text.replaceAll(" ", "·").replaceAll("\n", "⏎").replaceAll("\t", "⇥").replace(/[\u0000-\u001f\u200b-\u200f\u202a-\u202e\u2066-\u2069]/g, "�").slice(0, 40);
}

function percent(share) {
  if (share > 0.9995) return "100 %";
  return share < 0.001 ? "< 0.1 %" : `${(share * 100).toFixed(1)} %`;
}

function place(card, element) {
  const box = element.getClientRects()[0] ?? element.getBoundingClientRect();
  const { width, height } = card.getBoundingClientRect();
  const left = Math.min(Math.max(box.left + box.width / 2 - width / 2, MARGIN), innerWidth - width - MARGIN);
  const above = box.top - height - MARGIN;
  card.style.left = `${left}px`;
  card.style.top = `${above > MARGIN ? above : box.bottom + MARGIN}px`;
}
