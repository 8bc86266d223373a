// The turns that run: what is asked of the server, and how its events become an answer.
import { announce } from "./dom.js";

const askAgainAfter = 1000; // milliseconds, when the server said that it is not ready

export class Turns {
  #connection;
  #screen;
  #running = new Map(); // node id -> the turn that fills it

  /** `screen` has show(turn, now), ended(turn), keep(conversation), keepSoon(conversation). */
  constructor(connection, screen) {
    this.#connection = connection;
    this.#screen = screen;
  }

  of(node) {
    return this.#running.get(node.id);
  }

  isBusy(id) {
    return [...this.#running.values()].some((turn) => turn.conversation.id === id);
  }

  /** Asks for an answer that `node` takes in. */
  ask(conversation, node, request) {
    const turn = { conversation, node, request, timer: 0 };
    this.#running.set(node.id, turn);
    this.#start(turn);
  }

  /** Goes on with an answer that was cut; `begin(onevent)` asks for what comes after it, and gives a function that ends that. */
  goOn(conversation, node, begin) {
    const before = { tokens: node.usage?.output_tokens ?? 0, lasted_ms: node.lasted_ms ?? 0 };
    const turn = { conversation, node, before, timer: 0 };
    Object.assign(node, { status: "running", note: undefined, tokens: undefined });
    this.#running.set(node.id, turn);
    turn.asked_ms = performance.now();
    turn.abort = begin((event) => this.#onEvent(turn, event));
    this.#screen.show(turn, true);
  }

  stop(turn) {
    if (turn.abort !== undefined) turn.abort();
    else this.#connection.cancel(turn.node.id);
    this.#measure(turn);
    this.#end(turn, "stopped");
    announce("Stopped");
  }

  stopAllOf(id) {
    for (const turn of [...this.#running.values()]) if (turn.conversation.id === id) this.stop(turn);
  }

  /** The connection is open again. */
  resume() {
    for (const turn of this.#running.values()) if (turn.node.status === "waiting") this.#start(turn);
  }

  #start(turn) {
    const { node } = turn;
    turn.fresh = true; // what an earlier try left is shown until the new answer begins
    turn.asked_ms = performance.now();
    const sent = this.#connection.begin(node.id, turn.request, (event) => this.#onEvent(turn, event));
    node.status = sent ? "running" : "waiting";
    node.note = sent ? undefined : "The server is not connected. The question is asked when it is back.";
    this.#screen.show(turn, true);
  }

  /** Notes when the first token came, and removes what an earlier try of the same answer left. */
  #begin(turn) {
    turn.first_ms ??= performance.now() - turn.asked_ms;
    if (!turn.fresh) return;
    turn.fresh = false;
    turn.first_ms = performance.now() - turn.asked_ms;
    Object.assign(turn.node, { text: "", thought: undefined, calls: undefined, tokens: undefined, note: undefined, usage: undefined, first_ms: turn.first_ms });
  }

  #onEvent(turn, event) {
    if (turn.over) return this.#afterEnd(turn, event);
    const { node } = turn;
    switch (event.type) {
      case "response.created":
        node.model = event.response.model;
        break;
      case "response.output_text.delta":
        this.#begin(turn);
        node.text += event.delta;
        if (event.usage) this.#take(turn, event.usage);
        if (event.logprobs?.length > 0) (node.tokens ??= []).push(...event.logprobs);
        break;
      case "response.reasoning_text.delta":
        this.#begin(turn);
        node.thought = (node.thought ?? "") + event.delta;
        break;
      case "response.output_item.added":
      case "response.output_item.done":
        if (event.item.type === "function_call") this.#onCall(turn, event.item);
        break;
      case "response.function_call_arguments.delta": {
        const call = node.calls?.find((one) => one.item_id === event.item_id);
        if (call !== undefined) call.arguments += event.delta;
        break;
      }
      case "response.completed":
        return this.#finish(turn, event.response, "done");
      case "response.incomplete":
        return this.#finish(turn, event.response, event.response.incomplete_details?.reason === "cancelled" ? "stopped" : "cut");
      case "response.failed":
        return this.#fail(turn, event.response.error?.message ?? "unknown error", /shutting down/.test(event.response.error?.message));
      case "error":
        return this.#fail(turn, event.error?.message ?? "unknown error", event.status === 503, event.error?.code);
      case "page.lost":
        if (turn.before !== undefined) return this.#fail(turn, "the connection was lost", false);
        node.status = "waiting";
        node.note = undefined;
        announce("The connection was lost");
        break;
      case "page.too_large":
        return this.#fail(turn, "the chat is longer than the server takes in one message (`server.max_frame`); begin a new one", false);
    }
    this.#screen.keepSoon(turn.conversation);
    this.#screen.show(turn, false);
  }

  /** A turn that was stopped still learns what it used. */
  #afterEnd(turn, event) {
    if (!event.response?.usage || turn.before !== undefined) return;
    this.#take(turn, event.response.usage);
    this.#screen.keep(turn.conversation);
    this.#screen.show(turn, true);
  }

  #onCall(turn, item) {
    this.#begin(turn);
    const calls = (turn.node.calls ??= []);
    const known = calls.find((call) => call.item_id === item.id);
    const call = { item_id: item.id, call_id: item.call_id, name: item.name ?? "", arguments: item.arguments ?? "" };
    if (known === undefined) calls.push(call);
    else Object.assign(known, call);
  }

  /** Takes in what was used; an answer that was continued has used the sum. */
  #take({ node, before }, usage) {
    const output = usage.output_tokens + (before?.tokens ?? 0);
    node.usage = before === undefined ? usage : { total_tokens: usage.total_tokens, input_tokens: usage.total_tokens - output, output_tokens: output };
  }

  #measure(turn) {
    if (turn.first_ms === undefined) return;
    turn.node.lasted_ms = performance.now() - turn.asked_ms - turn.first_ms + (turn.before?.lasted_ms ?? 0);
  }

  #finish(turn, response, status) {
    this.#begin(turn);
    if (response.usage) this.#take(turn, response.usage);
    this.#measure(turn);
    this.#end(turn, status);
    announce(status === "stopped" ? "Stopped" : `Answer: ${turn.node.text.slice(0, 2000)}`);
  }

  /** `passing`: the server will do later what it did not do now. */
  #fail(turn, message, passing, code) {
    const { node } = turn;
    if (turn.before !== undefined) {
      node.note = `Going on failed: ${message}.`;
      this.#end(turn, "cut");
      return announce(node.note);
    }
    if (passing) {
      node.status = "waiting";
      node.note = `The server says: ${message}. Asking again.`;
      clearTimeout(turn.timer);
      turn.timer = setTimeout(() => this.#connection.state === "open" && this.#start(turn), askAgainAfter);
      return this.#screen.show(turn, false);
    }
    Object.assign(node, { error: message, error_code: code, note: undefined });
    this.#end(turn, "failed");
    announce(`No answer: ${message}`);
  }

  #end(turn, status) {
    clearTimeout(turn.timer);
    turn.over = true;
    this.#running.delete(turn.node.id);
    turn.node.status = status;
    if (turn.before === undefined) turn.node.note = undefined;
    turn.conversation.changed = Date.now();
    this.#screen.keep(turn.conversation);
    this.#screen.ended(turn);
  }
}
