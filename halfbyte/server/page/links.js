// Which addresses a link in a model's answer may have.

const SAFE = /^(?:https?:|mailto:)/i;

/** The address, or null for one that could run code, read files or reach into this page. */
export function safeAddress(written) {
  // Browsers drop tabs and line breaks inside addresses and control characters before them: so do we, before judging.
  const address = written.replace(/[\u0000-\u0020\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g, "");
  if (!SAFE.test(address)) return null;
  try {
    const url = new URL(address);
    return SAFE.test(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}
