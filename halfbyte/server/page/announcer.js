// What a screen reader says of its own accord.

import { byId } from "./dom.js";

export function announce(text) {
  const region = byId("announcer");
  // The same text twice in a row would be said once.
  region.textContent = region.textContent === text ? `${text}\u00a0` : text;
}
