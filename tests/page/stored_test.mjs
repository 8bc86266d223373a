// Answers that the server stores: reading on, stopping, forgetting, other tabs. node stored_test.mjs FOLDER_OF_THE_PAGE
import assert from "node:assert/strict";
import { load } from "./load.mjs";

globalThis.location = { href: "http://127.0.0.1/" };
globalThis.document = { getElementById: () => null };
const memory = new Map();
globalThis.localStorage = new Proxy({ getItem: (key) => memory.get(key) ?? null, setItem: (key, value) => memory.set(key, value), removeItem: (key) => memory.delete(key) },
  { ownKeys: () => [...memory.keys()], getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true }) });

const { Turns } = await load("turns.js");
const { forgetNoted } = await load("stored.js");
const { takeAnswers } = await load("store.js");
const { exportJson } = await load("transfer.js");

const noted = () => [...memory.keys()].filter((key) => key.includes("forget:"));

/** A connection whose replies the test gives: `replies` are taken in turn, {status, events, error, stays, offline}. */
class Wire extends EventTarget {
  state = "open";
  calls = [];
  replies = [];
  requests = [];

  open(state = "open") {
    this.state = state;
    this.dispatchEvent(new Event("state"));
  }

  lock(detail) {
    this.detail = detail;
    this.open("locked");
  }

  begin(lane, request, onevent) {
    if (this.state !== "open") return false;
    this.requests.push(request);
    this.socket = onevent;
    return true;
  }

  cancel() {
    this.calls.push("socket cancel");
  }

  async stream(path, body, signal) {
    this.calls.push(`GET ${path}`);
    const { status = 200, events = [], error, stays, offline } = this.replies.shift() ?? { stays: true };
    if (offline) throw new TypeError("offline");
    if (status !== 200) return Response.json({ error: { message: `status ${status}` } }, { status });
    const text = [...events, ...(error ? [{ error }] : [])].map((event) => `event: x\ndata: ${JSON.stringify(event)}\n\n`).join("");
    return new Response(new ReadableStream({ start(control) {
      const bytes = new TextEncoder().encode(text);
      for (let at = 0; at < bytes.length; at += 50) control.enqueue(bytes.slice(at, at + 50)); // pieces end anywhere
      if (stays) signal.addEventListener("abort", () => control.error(new Error("aborted")));
      else control.close();
    } }));
  }

  async ask(path, sent, method = sent === undefined ? "GET" : "POST") {
    this.calls.push(`${method} ${path}`);
    if (this.gone) return { status: 404, message: "there is no such response" };
    if (this.unreachable) return { status: 0, message: "The server does not answer." };
    return { body: { id: "r", usage: { input_tokens: 1, output_tokens: 5, total_tokens: 6 } } };
  }
}

const usage = { input_tokens: 3, output_tokens: 4, total_tokens: 7 };
const created = (id = "resp_1", n = 0) => ({ type: "response.created", sequence_number: n, response: { id, model: "m" } });
const delta = (n, text, logprobs = []) => ({ type: "response.output_text.delta", sequence_number: n, delta: text, logprobs });
const completed = (n) => ({ type: "response.completed", sequence_number: n, response: { usage } });

/** A page: its turns, one conversation, what was kept of it each time. */
function pageOf({ node = {}, keeps = true, wire = new Wire() } = {}) {
  const page = { wire, saves: [], ended: 0, shown: [], node: { id: "n", role: "assistant", text: "", status: "running", ...node } };
  page.conversation = { id: "c", nodes: { n: page.node } };
  page.storage = { nodes: { n: page.node } };
  const keep = () => {
    if (keeps) page.saves.push(JSON.parse(JSON.stringify(page.node)));
    return keeps;
  };
  page.turns = new Turns(page.wire, { show: () => page.shown.push(page.node.text), ended: () => ++page.ended, keep, keepSoon: keep, reload: () => {}, kept: () => page.storage.nodes.n });
  page.ask = () => page.turns.ask(page.conversation, page.node, { input: "q", store: false });
  page.give = (...events) => events.forEach((event) => page.wire.socket(event));
  return page;
}

async function until(what, condition) {
  for (let i = 0; !condition(); ++i) {
    assert.ok(i < 1000, `not reached: ${what}`);
    await new Promise((done) => setTimeout(done, 10));
  }
}

const over = (page) => until("the end of the turn", () => page.ended > 0);
const path = (after) => `GET v1/responses/resp_1?stream=true${after === undefined ? "" : `&starting_after=${after}`}`;

{ // An answer that nothing disturbs is stored, and forgotten at its end.
  const page = pageOf();
  page.ask();
  assert.deepEqual(page.wire.requests, [{ input: "q", store: true, background: true }]);
  page.give(created());
  assert.equal(page.saves.at(-1).response_id, "resp_1", "the id is kept at once");
  page.give(delta(1, "Hel"), delta(2, "lo"));
  for (const save of page.saves.slice(1)) assert.equal(save.text.length, [0, 3, 5][save.sequence_number ?? 0], "text and number are kept together");
  assert.deepEqual(page.wire.calls, []);
  page.give(completed(3));
  assert.deepEqual([page.node.text, page.node.status, page.node.response_id, page.node.usage], ["Hello", "done", undefined, usage]);
  await until("forgotten", () => noted().length === 0);
  assert.deepEqual(page.wire.calls, ["DELETE v1/responses/resp_1"]);
}

{ // A lost socket: the rest is read over HTTP, what comes twice is dropped, and each break is tried again.
  const page = pageOf();
  page.ask();
  page.give(created(), delta(1, "a"), delta(2, "b"));
  page.wire.replies = [{ events: [delta(2, "b"), delta(3, "c")] }, { offline: true }, { status: 503 }, { status: 429 },
    { events: [], error: { code: "interrupted" } }, { events: [delta(3, "c"), delta(4, "d"), completed(5)] }];
  page.wire.state = "waiting";
  page.give({ type: "page.lost" });
  assert.equal(page.node.status, "waiting");
  assert.deepEqual(page.wire.calls, [], "nothing is asked before the server answers");
  page.wire.open();
  page.turns.resume();
  await over(page);
  assert.equal(page.wire.requests.length, 1, "it is not asked anew");
  assert.deepEqual([page.node.text, page.node.status, page.node.lasted_ms], ["abcd", "done", undefined]);
  assert.deepEqual(page.wire.calls, [path(2), path(3), path(3), path(3), path(3), path(3), "DELETE v1/responses/resp_1"]);
}

{ // A daemon that is told to stop says so over the socket.
  const page = pageOf();
  page.ask();
  page.wire.replies = [{ events: [delta(2, "b"), completed(3)] }];
  page.give(created(), delta(1, "a"), { type: "error", status: 503, error: { code: "interrupted", message: "the server stops" } });
  await over(page);
  assert.deepEqual([page.node.text, page.node.status, page.wire.requests.length], ["ab", "done", 1]);
}

{ // After a reload it goes on behind what was kept.
  const page = pageOf({ node: { response_id: "resp_1", sequence_number: 2, text: "ab", calls: [{ item_id: "i", call_id: "c", name: "f", arguments: '{"a"' }] } });
  page.wire.replies = [{ events: [delta(3, "c"), { type: "response.function_call_arguments.delta", sequence_number: 4, item_id: "i", delta: ":1}" }, completed(5)] }];
  page.turns.takeUp(page.conversation, page.node);
  await over(page);
  assert.deepEqual([page.node.text, page.node.calls[0].arguments, page.node.usage, page.node.status], ["abc", '{"a":1}', usage, "done"]);
  assert.deepEqual(page.wire.calls, [path(2), "DELETE v1/responses/resp_1"]);
}

{ // One with probabilities, which are not kept, or without a text, is read from the start; what was shown stays until then.
  const tokens = ["a", "b", "c"].map((token) => ({ token, logprob: -1 }));
  const page = pageOf({ node: { response_id: "resp_1", sequence_number: 2, text: "ab", first_ms: 7, with_tokens: true } });
  page.wire.replies = [{ events: [created(), delta(1, "a", [tokens[0]]), delta(2, "b", [tokens[1]]), delta(3, "c", [tokens[2]]), completed(4)] }];
  page.turns.takeUp(page.conversation, page.node);
  await over(page);
  assert.deepEqual([page.node.text, page.node.tokens, page.node.first_ms], ["abc", tokens, 7]);
  assert.ok(page.shown.every((text) => text.length >= 2), "the text never gets shorter");
  assert.equal(page.wire.calls[0], path());

  const early = pageOf({ node: { response_id: "resp_1", text: "of an earlier try" } });
  early.wire.replies = [{ events: [created(), delta(1, "a"), completed(2)] }];
  early.turns.takeUp(early.conversation, early.node);
  await over(early);
  assert.equal(early.node.text, "a");
}

{ // The server does not have it any more: it is asked anew where the question is at hand.
  const page = pageOf();
  page.ask();
  page.give(created(), delta(1, "a"));
  page.wire.replies = [{ status: 404 }];
  page.give({ type: "page.lost" });
  await until("asked anew", () => page.wire.requests.length === 2);
  page.give(created("resp_2"), { type: "response.in_progress", sequence_number: 1, response: {} });
  assert.deepEqual([page.saves.at(-1).text, page.saves.at(-1).response_id, page.saves.at(-1).sequence_number], ["a", "resp_2", undefined], "no number of another text");
  page.give(delta(2, "A"), delta(3, "B"), completed(4));
  assert.deepEqual([page.node.text, page.node.status], ["AB", "done"]);
  assert.ok(page.node.lasted_ms >= 0);
  assert.equal(page.wire.calls.at(-1), "DELETE v1/responses/resp_2");

  const later = pageOf({ node: { response_id: "resp_1", sequence_number: 2, text: "ab" } });
  later.wire.replies = [{ status: 404 }];
  later.turns.takeUp(later.conversation, later.node);
  await over(later);
  assert.deepEqual([later.node.text, later.node.status, later.node.response_id], ["ab", "interrupted", undefined]);

  const other = pageOf({ node: { response_id: "resp_1", sequence_number: 2, text: "ab" } });
  other.wire.replies = [{ status: 404 }];
  other.turns.takeUp(other.conversation, other.node);
  await new Promise((done) => queueMicrotask(done));
  other.storage = { nodes: { n: { ...other.node, text: "abc", status: "done" } } }; // another tab had the end first
  await over(other);
  assert.deepEqual([other.node.text, other.node.status], ["abc", "done"]);
}

{ // No room on the server: it is asked without being stored, and then lost as before.
  const page = pageOf();
  page.ask();
  page.give({ type: "error", status: 507, error: { code: "storage_full", message: "full" } });
  assert.deepEqual(page.wire.requests[1], { input: "q", store: false });
  page.give(created(), delta(1, "a"));
  assert.equal(page.node.response_id, undefined);
  page.give({ type: "page.lost" });
  assert.equal(page.node.status, "waiting");
  page.turns.resume();
  assert.equal(page.wire.requests.length, 3);
  page.give(created(), delta(1, "b"), completed(2));
  assert.deepEqual([page.node.text, page.wire.calls], ["b", []]);
}

{ // What is refused before it begins: asked without being stored, which gives status and code. A server that is not ready is asked again.
  const page = pageOf();
  page.ask();
  page.give(created(), { type: "response.failed", sequence_number: 1, response: { error: { code: "invalid_prompt", message: "too long" } } });
  assert.deepEqual(page.wire.requests[1], { input: "q", store: false });
  page.give({ type: "error", status: 503, error: { code: "model_not_ready", message: "not ready" } });
  assert.equal(page.node.status, "waiting");
  page.turns.resume();
  assert.deepEqual(page.wire.requests[2], { input: "q", store: true, background: true });
  page.give(created("resp_2"), { type: "response.failed", sequence_number: 1, response: { error: { code: "invalid_prompt", message: "too long" } } },
    { type: "error", status: 400, error: { code: "context_length_exceeded", message: "too long" } });
  assert.deepEqual([page.node.status, page.node.error_code, page.node.response_id], ["failed", "context_length_exceeded", undefined]);
  assert.deepEqual(page.wire.calls, ["DELETE v1/responses/resp_1", "DELETE v1/responses/resp_2"]);
  await until("forgotten", () => noted().length === 0);
}

{ // Stop, over the socket: the last event has what it used; the response is forgotten after it.
  const page = pageOf();
  page.ask();
  page.give(created(), delta(1, "a"));
  page.turns.stop(page.turns.of(page.node));
  assert.deepEqual([page.node.status, page.wire.calls, noted().length], ["stopped", ["socket cancel"], 1]);
  page.give({ type: "response.incomplete", sequence_number: 2, response: { usage, incomplete_details: { reason: "cancelled" } } });
  await until("forgotten", () => noted().length === 0);
  assert.deepEqual([page.node.usage, page.wire.calls.at(-1)], [usage, "DELETE v1/responses/resp_1"]);
}

{ // Stop before the server said which response it is.
  const page = pageOf();
  page.ask();
  page.turns.stop(page.turns.of(page.node));
  page.give(created(), { type: "response.incomplete", sequence_number: 1, response: { usage, incomplete_details: { reason: "cancelled" } } });
  await until("forgotten", () => page.wire.calls.at(-1) === "DELETE v1/responses/resp_1" && noted().length === 0);
  assert.equal(page.node.status, "stopped");
}

{ // Stop while it is read over HTTP.
  const page = pageOf({ node: { response_id: "resp_1", sequence_number: 1, text: "a" } });
  page.wire.replies = [{ events: [delta(2, "b")], stays: true }];
  page.turns.takeUp(page.conversation, page.node);
  await until("reading", () => page.node.text === "ab");
  page.turns.stop(page.turns.of(page.node));
  await until("forgotten", () => page.wire.calls.length === 3 && noted().length === 0);
  assert.deepEqual(page.wire.calls.slice(1), ["POST v1/responses/resp_1/cancel", "DELETE v1/responses/resp_1"]);
  assert.deepEqual([page.node.text, page.node.status, page.node.usage.output_tokens], ["ab", "stopped", 5]);
}

{ // Stop while the server is away: done once it is back, also by a page that was loaded since.
  const page = pageOf();
  page.ask();
  page.give(created(), delta(1, "a"));
  page.wire.state = "waiting";
  page.wire.unreachable = true;
  page.give({ type: "page.lost" });
  page.turns.stop(page.turns.of(page.node));
  await until("tried", () => page.wire.calls.length > 0);
  await new Promise((done) => setTimeout(done, 10));
  assert.deepEqual([page.node.status, noted().length, page.wire.calls.filter((call) => call.startsWith("DELETE"))], ["stopped", 1, []]);
  const later = new Wire();
  later.gone = true; // the daemon was started anew
  forgetNoted(later);
  await until("forgotten", () => noted().length === 0);
  assert.deepEqual(later.calls, ["DELETE v1/responses/resp_1"]);
  page.wire.open();
  await new Promise((done) => setTimeout(done, 10));
  assert.ok(!page.wire.calls.some((call) => call.startsWith("GET")), "a stopped answer is not read on");
}

{ // A key that the server does not take ends in the question for one; then it goes on.
  const page = pageOf({ node: { response_id: "resp_1", sequence_number: 1, text: "a" } });
  page.wire.replies = [{ status: 401 }, { events: [delta(2, "b"), completed(3)] }];
  page.turns.takeUp(page.conversation, page.node);
  await until("locked", () => page.wire.state === "locked");
  assert.equal(page.node.status, "waiting");
  page.wire.open();
  await over(page);
  assert.equal(page.node.text, "ab");
}

{ // A server that is away when the page is loaded.
  const wire = new Wire();
  const page = pageOf({ wire, node: { response_id: "resp_1", sequence_number: 1, text: "a" } });
  wire.state = "connecting";
  page.turns.takeUp(page.conversation, page.node);
  await new Promise((done) => setTimeout(done, 10));
  assert.equal(page.node.status, "running");
  wire.open("waiting");
  assert.equal(page.node.status, "waiting");
  wire.replies = [{ events: [delta(2, "b"), completed(3)] }];
  wire.open();
  await over(page);
  assert.deepEqual([page.node.text, wire.calls[0]], ["ab", path(1)]);
}

{ // A browser that did not take the end: the server keeps it, since a reload would ask for it.
  const page = pageOf({ keeps: false });
  page.ask();
  page.give(created(), delta(1, "a"), completed(2));
  await new Promise((done) => setTimeout(done, 10));
  assert.deepEqual(page.wire.calls, []);
  page.storage = { nodes: {} };
  const none = pageOf({ keeps: false });
  none.storage = { nodes: {} }; // it kept nothing at all
  none.ask();
  none.give(created(), delta(1, "a"), completed(2));
  await until("forgotten", () => none.wire.calls.length === 1);
}

{ // Only some are read at once: browsers open few connections.
  const wire = new Wire();
  const pages = Array.from({ length: 5 }, () => pageOf({ wire, node: { response_id: "resp_1", sequence_number: 1, text: "" } }));
  for (const page of pages) page.turns.takeUp(page.conversation, page.node);
  await new Promise((done) => setTimeout(done, 20));
  assert.equal(wire.calls.length, 3);
  pages[0].turns.stop(pages[0].turns.of(pages[0].node));
  await until("the next is read", () => wire.calls.filter((call) => call.startsWith("GET")).length === 4);
  for (const page of pages.slice(1)) page.turns.stop(page.turns.of(page.node));
  await until("all forgotten", () => noted().length === 0);
}

{ // With locks, one tab fills an answer, and the next goes on where that one ended.
  const held = new Map(); // name -> the end of the queue
  const locks = { request: (name, run) => {
    const mine = (held.get(name) ?? Promise.resolve()).then(run);
    held.set(name, mine);
    return mine;
  } };
  Object.defineProperty(globalThis, "navigator", { value: { locks }, configurable: true });
  const first = pageOf();
  first.ask();
  first.give(created(), delta(1, "a"));
  const second = pageOf({ node: { response_id: "resp_1", sequence_number: 1, text: "a" } });
  second.storage = first.storage;
  second.turns.takeUp(second.conversation, second.node);
  await new Promise((done) => setTimeout(done, 10));
  assert.deepEqual([second.wire.calls, second.turns.isBusy("c"), first.turns.isBusy("c")], [[], false, true]);
  first.give(delta(2, "b"), completed(3));
  await over(second);
  assert.deepEqual([second.wire.calls, second.turns.of(second.node), second.saves], [[], undefined, []], "it was over");

  const third = pageOf({ node: { response_id: "resp_1", sequence_number: 1, text: "a" } });
  const fourth = pageOf({ node: { response_id: "resp_1", sequence_number: 1, text: "a" } });
  third.turns.takeUp(third.conversation, third.node);
  fourth.turns.takeUp(fourth.conversation, fourth.node);
  await until("reading", () => third.wire.calls.length === 1);
  assert.deepEqual(fourth.wire.calls, []);
  fourth.turns.stop(fourth.turns.of(fourth.node));
  assert.deepEqual([fourth.wire.calls, fourth.node.status], [["POST v1/responses/resp_1/cancel"], "running"], "the tab that reads it ends it");
  third.turns.stopAllOf("c");
  fourth.turns.stopAllOf("c");
  await until("forgotten", () => noted().length === 0);
  assert.equal(fourth.wire.calls.at(-1), "DELETE v1/responses/resp_1");
}

{ // What a tab takes over from another: new messages and answers that it does not fill.
  const conversation = { nodes: { a: { id: "a", status: "done", tokens: [1] }, b: { id: "b", status: "running", text: "own" }, c: { id: "c", status: "interrupted", note: "x" } } };
  const { c } = conversation.nodes;
  takeAnswers(conversation, { nodes: { a: { id: "a", status: "done" }, b: { id: "b", status: "running", text: "" }, c: { id: "c", status: "done", text: "whole" }, d: { id: "d", status: "done" } } },
    (node) => node.id !== "b");
  assert.deepEqual(conversation.nodes, { a: { id: "a", status: "done", tokens: [1] }, b: { id: "b", status: "running", text: "own" }, c: { id: "c", status: "done", text: "whole" }, d: { id: "d", status: "done" } });
  assert.equal(conversation.nodes.c, c);
  assert.ok(!/resp_1|sequence/.test(exportJson([{ nodes: { a: { response_id: "resp_1", sequence_number: 1 } } }])), "ids stay out of files");
}
process.exit(0); // streams that stay
