// Line icons on a 24 grid, drawn as paths.

const PATHS = {
  plus: "M12 5v14M5 12h14",
  menu: "M4 7h16M4 12h16M4 17h10",
  more: "M5.5 12a.5.5 0 1 0 .01 0M12 12a.5.5 0 1 0 .01 0M18.5 12a.5.5 0 1 0 .01 0",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M8 8h8v8H8z",
  copy: "M9 9h10v10H9zM5 15V5h10",
  check: "M5 12.5l4.5 4.5L19 7.5",
  edit: "M4 20h4L19 9l-4-4L4 16zM13.5 6.5l4 4",
  retry: "M19 12a7 7 0 1 1-2.2-5.1M19 4v4h-4",
  left: "M14.5 6l-6 6 6 6",
  right: "M9.5 6l6 6-6 6",
  down: "M12 5v14M6 13l6 6 6-6",
  close: "M6 6l12 12M18 6L6 18",
  sliders: "M4 8h9M19 8h1M4 16h1M11 16h9M16 5.5v5M8 13.5v5",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8M12 2.5v2M12 19.5v2M2.5 12h2M19.5 12h2M5.3 5.3l1.4 1.4M17.3 17.3l1.4 1.4M5.3 18.7l1.4-1.4M17.3 6.7l1.4-1.4",
  moon: "M20 14.5A8 8 0 1 1 9.5 4a6.5 6.5 0 0 0 10.5 10.5z",
  auto: "M12 4a8 8 0 1 0 0 16zM12 4a8 8 0 0 1 0 16",
  bars: "M5 19V11M12 19V5M19 19v-6",
  keys: "M3 7h18v10H3zM7 11h.01M11 11h.01M15 11h.01M8 14h8",
};
const SVG = "http://www.w3.org/2000/svg";

export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}

/** Four cells: the mark, and counting in binary the sign that the model is at work. */
export function nibble(counting = false) {
  const mark = document.createElement("span");
  mark.className = counting ? "nibble counting" : "nibble";
  mark.setAttribute("aria-hidden", "true");
  for (let cell = 0; cell < 4; cell++) mark.append(document.createElement("i"));
  return mark;
}
