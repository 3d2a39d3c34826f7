// Which part of an answer each token wrote, so that its probability can be shown there.

/** A token as it is kept: [text, logprob, [[text, logprob], ...]]. Bytes that are no whole character join the next. */
export function keepTokens(kept, entries, decoder) {
  for (const entry of entries) {
    const text = entry.bytes ? decoder.decode(new Uint8Array(entry.bytes), { stream: true }) : entry.token;
    const top = entry.top_logprobs.map(({ token, logprob }) => [token, round(logprob)]);
    kept.push([text, round(entry.logprob), top]);
  }
}

const round = (logprob) => Math.round(logprob * 1000) / 1000;

/**
 * Places [from, to, token] in `text`, in order. Tokens that wrote nothing of it (marks of thinking, ends) have none;
 * one of which only the end or the beginning is shown has that.
 */
export function placesIn(text, tokens) {
  const places = [];
  let at = 0;
  for (const token of tokens) {
    const spelt = token[0];
    if (!spelt || at >= text.length) continue;
    const shown = shownPart(text, at, spelt);
    if (!shown) continue;
    places.push([at, at + shown, token]);
    at += shown;
  }
  return places;
}

function shownPart(text, at, spelt) {
  if (text.startsWith(spelt, at)) return spelt.length;
  const start = spelt.trimStart(); // an answer's first space is often left out
  if (start && text.startsWith(start, at)) return start.length;
  const rest = text.length - at;
  return rest < spelt.length && spelt.startsWith(text.slice(at)) ? rest : 0; // cut off by a stop string
}

/** Nodes for a run of the text beginning at `at`: a span for each token that wrote a part of it. */
export function tokenPiece(places, dress) {
  return (text, at) => {
    const nodes = document.createDocumentFragment();
    const end = at + text.length;
    let done = at;
    for (let i = firstAfter(places, at); i < places.length && places[i][0] < end; i++) {
      const from = Math.max(places[i][0], at);
      const to = Math.min(places[i][1], end);
      if (from > done) nodes.append(text.slice(done - at, from - at));
      nodes.append(dress(text.slice(from - at, to - at), places[i][2]));
      done = to;
    }
    if (done < end) nodes.append(text.slice(done - at));
    return nodes;
  };
}

/** The first place that ends after `at`. */
function firstAfter(places, at) {
  let low = 0;
  let high = places.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (places[middle][1] > at) high = middle;
    else low = middle + 1;
  }
  return low;
}
