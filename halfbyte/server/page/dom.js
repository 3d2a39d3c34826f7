// Elements, made without markup: text is only ever text.

const PROPERTIES = new Set(["value", "checked", "disabled", "hidden", "inert", "open", "indeterminate"]);

/** An element. `text` is its text, functions under `on` listen, null and false attributes are left out. */
export function el(name, props = {}, ...children) {
  const element = document.createElement(name);
  set(element, props);
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function set(element, props) {
  for (const [key, value] of Object.entries(props)) {
    if (key === "text") element.textContent = value;
    else if (key === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else if (PROPERTIES.has(key)) element[key] = value;
    else if (value === null || value === undefined || value === false) element.removeAttribute(key);
    else element.setAttribute(key, value === true ? "" : value);
  }
  return element;
}

export function byId(id) {
  return document.getElementById(id);
}

/** Whether a key pressed now would be typed into something. */
export function isTyping(target) {
  return target instanceof HTMLElement && (target.matches("input, textarea, select") || target.isContentEditable);
}
