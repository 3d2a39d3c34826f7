// Habits of the fields that messages are typed into.

const touch = matchMedia("(pointer: coarse)");

/** Whether a key sends: Enter does, with Shift it is a new line; on a touch screen Enter is a new line. */
export function sendsOn(event) {
  if (event.key !== "Enter" || event.isComposing || event.shiftKey || event.altKey) return false;
  return event.ctrlKey || event.metaKey || !touch.matches;
}

/** Make a field as high as its text, up to what its style allows. */
export function growWithText(field) {
  const fit = () => {
    field.style.height = "auto";
    field.style.height = `${field.scrollHeight}px`;
  };
  field.addEventListener("input", fit);
  return fit;
}
