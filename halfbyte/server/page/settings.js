// What can be set, as data: the panel draws it, requests carry it. An empty field is left to the model's own default.

/** Sampling: name as in a request, label, what it does, and where a value may lie. */
export const SAMPLING = [
  { name: "temperature", label: "Temperature", hint: "0 always takes the likeliest token", low: 0, high: 5, step: 0.05 },
  { name: "top_p", label: "Top p", hint: "Likeliest tokens that together reach this", low: 0, high: 1, step: 0.01 },
  { name: "top_k", label: "Top k", hint: "So many likeliest tokens; 0 is all", low: 0, high: 100000, step: 1 },
  { name: "min_p", label: "Min p", hint: "None below this share of the likeliest", low: 0, high: 1, step: 0.01 },
  { name: "repeat_penalty", label: "Repeat penalty", hint: "Divides recent tokens' logits; 1 is off", low: 0.1, high: 10, step: 0.01 },
  { name: "presence_penalty", label: "Presence penalty", hint: "Lowers tokens that occurred", low: -2, high: 2, step: 0.1 },
  { name: "frequency_penalty", label: "Frequency penalty", hint: "The same, each time they occurred", low: -2, high: 2, step: 0.1 },
  { name: "dry_multiplier", label: "DRY", hint: "Against going on with a repetition; 0 is off", low: 0, high: 5, step: 0.1 },
  { name: "max_tokens", label: "Longest answer", hint: "In tokens; else what the context holds", low: 1, high: 10000000, step: 1 },
  { name: "seed", label: "Seed", hint: "Same seed, same answer", low: 0, high: Number.MAX_SAFE_INTEGER, step: 1 },
];
export const THEMES = ["auto", "light", "dark"];
export const THINKING = ["auto", "on", "off"];
export const ALTERNATIVES = 5;

/** Settings with every field of the right kind, whatever was stored. */
export function readSettings(stored) {
  const sampling = {};
  for (const field of SAMPLING) {
    const value = numberOf(field, stored.sampling?.[field.name]);
    if (value !== null) sampling[field.name] = value;
  }
  return {
    theme: THEMES.includes(stored.theme) ? stored.theme : "auto",
    sampling,
    stop: Array.isArray(stored.stop) ? stored.stop.filter((text) => typeof text === "string" && text) : [],
    probabilities: stored.probabilities === true,
    thinking: THINKING.includes(stored.thinking) ? stored.thinking : "auto",
    system: typeof stored.system === "string" ? stored.system : "",
    model: typeof stored.model === "string" ? stored.model : "",
  };
}

/** A number a field can hold, or null. */
export function numberOf({ low, high, step }, value) {
  const number = typeof value === "number" ? value : NaN;
  const whole = step % 1 !== 0 || Number.isSafeInteger(number);
  return Number.isFinite(number) && number >= low && number <= high && whole ? number : null;
}

/** The body of a request for an answer to `messages`. */
export function requestBody(messages, settings, model) {
  const body = { messages, stream: true, stream_options: { include_usage: true }, ...settings.sampling };
  if (model) body.model = model;
  if (settings.stop.length > 0) body.stop = settings.stop;
  if (settings.probabilities) Object.assign(body, { logprobs: true, top_logprobs: ALTERNATIVES });
  if (settings.thinking === "off") body.reasoning_effort = "none"; // the server knows the switch of the model's template
  if (settings.thinking === "on") body.chat_template_kwargs = { enable_thinking: true, thinking: true };
  return body;
}
