// The turns that run: what is asked of the server, and how its events become an answer.
//
// The server stores each answer until this browser has all of it (stored.js). A running answer's node has its `response_id`,
// and the `sequence_number` of the last event that its text holds, so that the rest is read on after a loss or a reload.
import { lastEvents } from "./connection.js";
import { announce } from "./dom.js";
import { cancel, forget, hold, note, readOn } from "./stored.js";

const askAgainAfter = 1000; // milliseconds, when the server said that it is not ready

export function isRunning(node) {
  return ["running", "waiting"].includes(node?.status);
}

export class Turns {
  #connection;
  #screen;
  #running = new Map(); // node id -> the turn that fills it

  /** `screen` has show(turn, now), ended(turn), keep(conversation), keepSoon(conversation), reload(id), kept(turn). */
  constructor(connection, screen) {
    this.#connection = connection;
    this.#screen = screen;
  }

  of(node) {
    return this.#running.get(node.id);
  }

  /** Whether this tab fills an answer of a conversation. */
  isBusy(id) {
    return [...this.#running.values()].some((turn) => turn.conversation.id === id && !turn.elsewhere);
  }

  /** Asks for an answer that `node` takes in. */
  ask(conversation, node, request) {
    const turn = { conversation, node, request: { ...request, store: true, background: true }, timer: 0, elsewhere: false, release: hold(node) };
    this.#running.set(node.id, turn);
    this.#start(turn);
  }

  /** Goes on with an answer that was asked for before the page was loaded, once no other tab fills it. */
  takeUp(conversation, node) {
    const known = this.#running.get(node.id);
    if (known !== undefined) return Object.assign(known, { conversation, node }); // read anew from what is kept
    const turn = { conversation, node, elsewhere: true, timer: 0 };
    this.#running.set(node.id, turn);
    turn.release = hold(node, () => {
      if (turn.over) return;
      this.#screen.reload(conversation.id);
      const kept = this.#screen.kept(turn);
      if (!isRunning(kept) || kept.response_id === undefined) return this.#leave(turn);
      turn.elsewhere = false;
      // Probabilities of tokens are not kept: an answer with them is read from its first event.
      turn.shown = turn.node.sequence_number ?? -1;
      turn.fresh = turn.shown < 0 || turn.node.with_tokens === true;
      turn.seen = turn.fresh ? -1 : turn.shown;
      turn.id = turn.node.response_id;
      this.#readOn(turn);
    });
  }

  /** Goes on with an answer that was cut; `begin(onevent)` asks for what comes after it, and gives a function that ends that. */
  goOn(conversation, node, begin) {
    const before = { tokens: node.usage?.output_tokens ?? 0, lasted_ms: node.lasted_ms ?? 0 };
    const turn = { conversation, node, before, elsewhere: false, timer: 0 };
    Object.assign(node, { status: "running", note: undefined, tokens: undefined });
    this.#running.set(node.id, turn);
    turn.asked_ms = performance.now();
    turn.abort = begin((event) => this.#onEvent(turn, event));
    this.#screen.show(turn, true);
  }

  stop(turn) {
    if (turn.elsewhere) return void cancel(this.#connection, turn.node.response_id); // the tab that fills it hears of it
    if (turn.abort === undefined) {
      this.#connection.cancel(turn.node.id);
      turn.ending = this.#connection.state === "open";
    } else {
      turn.abort();
      turn.ending = turn.id !== undefined;
      if (turn.ending) cancel(this.#connection, turn.id).then((response) => this.#afterEnd(turn, { type: "response.incomplete", response }));
    }
    this.#measure(turn);
    this.#end(turn, "stopped");
    announce("Stopped");
  }

  /** The conversation is deleted. */
  stopAllOf(id) {
    for (const turn of [...this.#running.values()]) {
      if (turn.conversation.id !== id) continue;
      if (!turn.elsewhere) {
        this.stop(turn);
      } else {
        forget(this.#connection, turn.node.response_id);
        this.#leave(turn);
      }
    }
  }

  /** Another tab has filled the answer, or does so. */
  #leave(turn) {
    turn.over = true;
    turn.release();
    this.#running.delete(turn.node.id);
    this.#screen.ended(turn);
  }

  /** Lets other tabs go on: the page is left, and may be kept for the way back. */
  release() {
    for (const turn of this.#running.values()) turn.release?.();
  }

  /** The connection is open again. */
  resume() {
    for (const turn of this.#running.values()) if (turn.node.status === "waiting" && turn.request !== undefined && turn.id === undefined) this.#start(turn);
  }

  #readOn(turn) {
    turn.asked_ms = undefined; // how fast tokens come is unknown
    turn.abort = readOn(this.#connection, turn.id, turn.seen, (event) => this.#onEvent(turn, event));
  }

  #start(turn) {
    const { node } = turn;
    turn.fresh = true; // what an earlier try left is shown until the new answer begins
    turn.seen = turn.shown = -1;
    this.#setStored(turn, undefined);
    turn.asked_ms = performance.now();
    const sent = this.#connection.begin(node.id, turn.request, (event) => this.#onEvent(turn, event));
    node.status = sent ? "running" : "waiting";
    node.note = sent ? undefined : "The server is not connected. The question is asked when it is back.";
    this.#screen.show(turn, true);
  }

  /** Asks for an answer that the server does not store. */
  #startUnstored(turn) {
    if (turn.id !== undefined) forget(this.#connection, turn.id);
    const { background, ...request } = turn.request;
    turn.request = { ...request, store: false };
    this.#start(turn);
  }

  #setStored(turn, id) {
    turn.id = id;
    turn.abort = undefined;
    this.#markStored(turn.node, id);
  }

  #markStored(node, id) {
    Object.assign(node, { response_id: id, sequence_number: undefined, with_tokens: undefined });
  }

  /** Notes when the first token came, and removes what an earlier try of the same answer left. */
  #begin(turn) {
    if (turn.asked_ms !== undefined && (turn.fresh || turn.first_ms === undefined)) turn.first_ms = performance.now() - turn.asked_ms;
    if (!turn.fresh) return;
    turn.fresh = false;
    Object.assign(turn.node, { text: "", thought: undefined, calls: undefined, tokens: undefined, note: undefined, usage: undefined,
      first_ms: turn.first_ms ?? turn.node.first_ms });
  }

  #onEvent(turn, event) {
    if (turn.over) return this.#afterEnd(turn, event);
    if (event.sequence_number <= turn.seen) return; // it came before the connection was lost
    turn.seen = event.sequence_number ?? turn.seen;
    const { node } = turn;
    switch (event.type) {
      case "response.created":
        node.model = event.response.model;
        if (turn.request?.store) this.#setStored(turn, event.response.id);
        this.#screen.keep(turn.conversation);
        break;
      case "response.output_text.delta":
        this.#begin(turn);
        node.text += event.delta;
        if (event.usage) this.#take(turn, event.usage);
        if (event.logprobs?.length > 0) {
          (node.tokens ??= []).push(...event.logprobs);
          node.with_tokens = true;
        }
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
        // What was refused before it began: the events of a stored response do not tell its status and code.
        if (turn.fresh && turn.request?.store) return this.#startUnstored(turn);
        return this.#fail(turn, event.response.error?.message ?? "unknown error", /shutting down/.test(event.response.error?.message));
      case "error":
        if (event.error?.code === "interrupted" && turn.id !== undefined) return this.#lose(turn);
        if (event.status === 507 && turn.request?.store) return this.#startUnstored(turn); // the server has no room
        return this.#fail(turn, event.error?.message ?? "unknown error", event.status === 503, event.error?.code);
      case "page.reading":
        Object.assign(node, { status: "running", note: undefined });
        return this.#screen.show(turn, true);
      case "page.gone":
        return this.#onGone(turn);
      case "page.lost":
        return this.#lose(turn);
      case "page.too_large":
        if (turn.id !== undefined) return this.#lose(turn); // another turn's message was
        return this.#fail(turn, "the chat is longer than the server takes in one message (`server.max_frame`); begin a new one", false);
    }
    if (!turn.fresh) node.sequence_number = turn.seen;
    if (turn.seen < turn.shown) return; // what was shown before stays until there is more
    this.#screen.keepSoon(turn.conversation);
    this.#screen.show(turn, false);
  }

  #lose(turn) {
    if (turn.before !== undefined) return this.#fail(turn, "the connection was lost", false);
    if (turn.node.status !== "waiting") announce("The connection was lost");
    Object.assign(turn.node, { status: "waiting", note: undefined });
    this.#screen.keepSoon(turn.conversation);
    this.#screen.show(turn, false);
    if (turn.id !== undefined && turn.abort === undefined) this.#readOn(turn);
  }

  /** The server has no such response any more: another tab has all of it, or the daemon was started anew. */
  #onGone(turn) {
    const kept = this.#screen.kept(turn);
    const over = kept !== undefined && !isRunning(kept);
    if (over) Object.assign(turn.node, kept);
    if (over || turn.request === undefined) return this.#end(turn, over ? kept.status : "interrupted");
    this.#start(turn);
  }

  /** A turn that was stopped still learns what it used. */
  #afterEnd(turn, event) {
    if (turn.request?.store) turn.id ??= event.response?.id;
    if (turn.id !== undefined && [...lastEvents, "page.lost"].includes(event.type)) forget(this.#connection, turn.id);
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
    if (turn.first_ms === undefined || turn.asked_ms === undefined) return;
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
    if (passing && turn.request === undefined) return this.#end(turn, "interrupted");
    if (passing) {
      if (turn.id !== undefined) forget(this.#connection, turn.id);
      this.#setStored(turn, undefined);
      Object.assign(turn.request, { store: true, background: true });
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
    const { id } = turn;
    turn.over = true;
    turn.release?.();
    this.#running.delete(turn.node.id);
    turn.node.status = status;
    if (turn.before === undefined) {
      turn.node.note = undefined;
      this.#markStored(turn.node, undefined);
    }
    turn.conversation.changed = Date.now();
    const kept = this.#screen.keep(turn.conversation);
    if (id !== undefined && turn.ending) note(id); // forgotten after its last event, which has what it used
    else if (id !== undefined && (kept || this.#screen.kept(turn) === undefined)) forget(this.#connection, id);
    this.#screen.ended(turn);
  }
}
