// What the page is doing: which conversation is shown, which answers are on their way, what models there are.
// Events: "shown" (another conversation or branch), "list" (the list of them), "progress" (an answer grew or ended;
// detail is its message), "models", "settings", "refused" (a key is wanted), "notice" (detail is a text).

import { listModels, streamChat } from "./api.js";
import { readKey } from "./api_key.js";
import { addMessage, messagesFor, newConversation, showBranch } from "./conversation.js";
import { readSettings, requestBody } from "./settings.js";
import { keepTokens } from "./tokens.js";

const SAVE_EVERY = 2000; // milliseconds: how much of an answer a crash of the browser may cost

export class Session extends EventTarget {
  constructor(store) {
    super();
    this.store = store;
    this.settings = readSettings(store.settings());
    this.current = null; // none yet: the first message makes one
    this.runs = new Map();
    this.models = [];
    this.modelsError = null;
  }

  emit(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  async loadModels() {
    try {
      this.models = await listModels(readKey());
      this.modelsError = null;
    } catch (error) {
      this.modelsError = error;
      if (error.wantsKey) this.emit("refused", error);
    }
    this.emit("models");
  }

  /** The model asked, or null while none is known. */
  get model() {
    return this.models.find((model) => model.id === this.settings.model) ?? this.models[0] ?? null;
  }

  change(settings) {
    Object.assign(this.settings, settings);
    this.store.saveSettings(this.settings);
    this.emit("settings");
  }

  open(conversation) {
    this.current = conversation;
    this.emit("shown");
    this.emit("list");
  }

  /** Ask `text` after the last message shown. */
  send(text) {
    if (!this.current) {
      this.current = newConversation(this.settings.system);
      this.store.save(this.current);
    }
    this.ask(this.current, this.current.leaf, text);
  }

  /** Ask something else in the place of a question; the former one stays beside it. */
  resend(question, text) {
    this.ask(this.current, question.parent, text);
  }

  ask(conversation, parent, text) {
    const question = addMessage(conversation, parent, "user", text);
    this.answer(conversation, question);
  }

  /** Another answer to the same question. */
  retry(answer) {
    this.answer(this.current, this.current.nodes[answer.parent]);
  }

  show(node) {
    showBranch(this.current, node);
    this.keep(this.current);
    this.emit("shown");
  }

  stop(conversation = this.current) {
    this.runs.get(conversation?.id)?.controller.abort();
  }

  isRunning(conversation = this.current) {
    return this.runs.has(conversation?.id);
  }

  isGrowing(node) {
    return [...this.runs.values()].some((run) => run.node === node);
  }

  rename(conversation, title) {
    conversation.title = title.trim().slice(0, 200) || conversation.title;
    this.keep(conversation);
    this.emit("list");
  }

  remove(conversation) {
    this.stop(conversation);
    this.store.remove(conversation.id);
    if (this.current === conversation) this.open(null);
    else this.emit("list");
  }

  restore(conversation) {
    this.store.save(conversation);
    this.open(conversation);
  }

  /** Store a conversation, unless it was deleted meanwhile. */
  keep(conversation) {
    if (this.store.conversations.has(conversation.id)) this.store.save(conversation);
  }

  /** The page is closing: store what is under way. What breaks off now is no fault of anyone's. */
  leave() {
    for (const run of this.runs.values()) {
      run.left = true;
      this.keep(run.conversation);
    }
  }

  async answer(conversation, question) {
    this.stop(conversation);
    const node = addMessage(conversation, question.id, "assistant");
    const run = { conversation, node, controller: new AbortController(), started: performance.now(), saved: 0 };
    this.runs.set(conversation.id, run);
    this.keep(conversation);
    this.emit("shown");
    this.emit("list");
    try {
      await this.receive(run, messagesFor(conversation, question.id));
    } catch (error) {
      this.fail(run, error);
    }
    if (this.runs.get(conversation.id) === run) this.runs.delete(conversation.id);
    conversation.updated = Date.now();
    this.keep(conversation);
    this.emit("progress", node);
    this.emit("list");
  }

  async receive(run, messages) {
    const { node, controller } = run;
    const model = this.model?.id;
    if (model) node.model = model;
    const decoder = new TextDecoder();
    for await (const part of streamChat(requestBody(messages, this.settings, model), readKey(), controller.signal)) {
      take(node, part, run, decoder);
      const now = performance.now();
      if (now - run.saved > SAVE_EVERY) {
        run.saved = now;
        this.keep(run.conversation);
      }
      this.emit("progress", node);
    }
  }

  fail({ node, left, controller }, error) {
    if (left) return;
    if (controller.signal.aborted) { // browsers do not agree on what a stream then throws
      node.finish = "stopped";
      return;
    }
    node.finish = "error";
    node.error = error.retryAfter ? `${error.message} Try again in ${error.retryAfter} s.` : error.message;
    if (error.wantsKey) this.emit("refused", error);
    else if (error.status === 0) this.loadModels(); // whether the server is there at all is worth knowing
  }
}

/** Add a part of the stream to its message. */
function take(node, part, run, decoder) {
  if ("text" in part) {
    if (node.thinking && node.thought_ms === undefined) node.thought_ms = Math.round(performance.now() - run.started);
    node.text += part.text;
  } else if ("thinking" in part) node.thinking = (node.thinking ?? "") + part.thinking;
  else if ("tokens" in part) keepTokens((node.tokens ??= []), part.tokens, decoder);
  else if ("finish" in part) node.finish = part.finish;
  else if ("usage" in part) {
    node.prompt_tokens = part.usage.prompt_tokens;
    node.completion_tokens = part.usage.completion_tokens;
  } else if ("timings" in part) {
    if (Number.isFinite(part.timings.decode_tok_s)) node.rate = part.timings.decode_tok_s;
    if (Number.isFinite(part.timings.first_token_s)) node.first_s = part.timings.first_token_s;
  }
}
