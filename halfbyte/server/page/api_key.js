// The key for the server: for this tab, or on this device where that is wanted.

const NAME = "halfbyte.key";

export function readKey() {
  return from(() => sessionStorage.getItem(NAME) ?? localStorage.getItem(NAME)) ?? "";
}

export function isRemembered() {
  return from(() => localStorage.getItem(NAME) !== null) ?? false;
}

export function writeKey(key, remember) {
  from(() => localStorage.removeItem(NAME));
  from(() => sessionStorage.removeItem(NAME));
  if (key) from(() => (remember ? localStorage : sessionStorage).setItem(NAME, key));
}

function from(read) {
  try {
    return read();
  } catch {
    return null; // storage that is shut off
  }
}
