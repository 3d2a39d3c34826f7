// The server's HTTP interface, as far as the page uses it.

import { eventsOf } from "./event_stream.js";

/** What the server or the way to it said instead of an answer. */
export class ApiError extends Error {
  constructor(message, { status = 0, code = null, retryAfter = null } = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.retryAfter = retryAfter;
  }

  get wantsKey() {
    return this.status === 401;
  }
}

/** Models that chat: [{id, context}]. Raises ApiError. */
export async function listModels(key) {
  const { data } = await (await request("v1/models", key)).json();
  return data
    .filter((model) => model.capabilities?.includes("chat") ?? true)
    .map((model) => ({ id: model.id, context: model.max_model_len ?? null }));
}

/**
 * Ask for an answer. Yields {thinking}, {text}, {tokens}, {finish}, {usage} and {timings} as they come; aborting
 * `signal` ends it and tells the server. Raises ApiError, also for a stream that broke off.
 */
export async function* streamChat(body, key, signal) {
  const response = await request("v1/chat/completions", key, { body, signal });
  let finished = false;
  try {
    for await (const data of eventsOf(response.body)) {
      if (data === "[DONE]") return;
      const chunk = JSON.parse(data);
      if (chunk.error) throw new ApiError(chunk.error.message, { code: chunk.error.code });
      for (const part of partsOf(chunk)) {
        finished ||= "finish" in part;
        yield part;
      }
    }
  } catch (error) {
    throw wayError(error, "The connection broke off while the answer came.");
  }
  if (!finished) throw new ApiError("The connection ended before the answer did.");
}

function* partsOf(chunk) {
  const choice = chunk.choices?.[0];
  const delta = choice?.delta ?? {};
  if (choice?.logprobs?.content?.length) yield { tokens: choice.logprobs.content };
  if (delta.reasoning_content) yield { thinking: delta.reasoning_content };
  if (delta.content) yield { text: delta.content };
  if (choice?.finish_reason) yield { finish: choice.finish_reason };
  if (chunk.timings) yield { timings: chunk.timings };
  if (chunk.usage) yield { usage: chunk.usage };
}

async function request(path, key, { body = null, signal = null } = {}) {
  const headers = key ? { authorization: `Bearer ${key}` } : {};
  if (body) headers["content-type"] = "application/json";
  let response;
  try {
    response = await fetch(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), signal });
  } catch (error) {
    throw wayError(error, "The server cannot be reached. Is it still running?");
  }
  if (!response.ok) throw await refusal(response);
  return response;
}

function wayError(error, message) {
  return error instanceof ApiError || error.name === "AbortError" ? error : new ApiError(message);
}

async function refusal(response) {
  const { status } = response;
  const retryAfter = Number(response.headers.get("retry-after")) || null;
  let said = null;
  try {
    said = (await response.json()).error;
  } catch {
    // A proxy's page, or nothing: the status must do.
  }
  return new ApiError(said?.message ?? `The server answered with status ${status}.`, { status, code: said?.code, retryAfter });
}
