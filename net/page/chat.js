// The page: the conversations, the turns that run, and what connects them to the server and to the screen.
import { Composer } from "./composer.js";
import { Connection } from "./connection.js";
import { confirmDialog, keyDialog } from "./dialog.js";
import { settingsDialog, snippetDialog } from "./dialogs.js";
import { announce, button, make } from "./dom.js";
import { readKey, writeKey } from "./key.js";
import { address } from "./link.js";
import { MessageList } from "./messages.js";
import { requestOf } from "./settings.js";
import * as store from "./store.js";

const $ = (id) => document.getElementById(id);
const saveEvery = 500; // milliseconds, while an answer comes
const askAgainAfter = 1000; // milliseconds, when the server said that it is not ready

const connection = new Connection(readKey());
const opened = new Map(); // conversations that were opened since the page was loaded, by id
const turns = new Map(); // node id -> the turn that fills it
let current = null;

// --- the screen --------------------------------------------------------------------------------------------

const scroll = $("scroll");
const messages = new MessageList($("log"), { regenerate, edit, select, answerCalls, isLeaf: (node) => store.childrenOf(current, node.id).length === 0 });
const composer = new Composer({ onsend: send, onstop: stop });

function nearEnd() {
  return scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 80;
}

function toEnd() {
  scroll.scrollTop = scroll.scrollHeight;
}

function showConversation() {
  const path = store.shownPath(current);
  messages.show(path, (node) => store.childrenOf(current, node.parent));
  if (path.length === 0) $("log").replaceChildren(welcome());
  $("title").textContent = current.title;
  document.title = `${current.title} · twill`;
  showRunning();
  showList();
  showModel();
}

function welcome() {
  const prompts = ["Why is the sky blue?", "Write a haiku about weaving.", "Explain TCP's slow start to a child."];
  return make("div", { class: "welcome" }, make("h2", {}, "What would you like to know?"),
    make("p", {}, "Chats stay in this browser. The server that serves this page answers them."),
    make("div", { class: "prompts" }, ...prompts.map((text) => button(text, () => composer.write(text)))));
}

function showList() {
  const kept = store.listConversations();
  const list = kept.some((one) => one.id === current.id) ? kept : [current, ...kept];
  $("chat-list").replaceChildren(...list.map((one) => make("li", {},
    button(one.title, () => openConversation(one.id), { class: "chat", "aria-current": one.id === current.id ? "true" : null }),
    button("×", () => askToRemove(one), { class: "quiet remove", "aria-label": `Delete ${one.title}` }))));
}

function showModel() {
  const name = current.settings.model ?? connection.models[0]?.id ?? "";
  $("model-name").textContent = name;
}

function shownTurn() {
  return store.shownPath(current).map((node) => turns.get(node.id)).find((turn) => turn !== undefined);
}

function showRunning() {
  composer.setRunning(shownTurn() !== undefined);
}

const stateTexts = { connecting: "Connecting", open: "Connected", waiting: "Trying again", locked: "Key needed" };

function showState() {
  $("state").dataset.state = connection.state;
  $("state-text").textContent = stateTexts[connection.state];
  if (connection.state === "waiting") notify(`${connection.detail} Trying again.`, "Try now", () => connection.retryNow());
  else if (connection.state === "locked") notify(connection.detail || "This server needs a key.", "Enter a key", askForKey);
  else if (connection.state === "open") notify("");
}

/** Says something above the messages, until it is said that nothing is. */
function notify(text, action, onaction) {
  const notice = $("notice");
  notice.hidden = text === "";
  if (notice.firstChild?.textContent === text) return; // said already: a screen reader need not repeat it
  notice.replaceChildren(make("span", {}, text), ...(action === undefined ? [] : [button(action, onaction)]));
}

function setListOpen(open) {
  document.body.classList.toggle("list-open", open);
  $("open-list").setAttribute("aria-expanded", String(open));
  $("shade").hidden = !open;
  document.querySelector("main").inert = open;
  if (open) $("new-chat").focus();
}

// --- keeping -------------------------------------------------------------------------------------------------

const unsaved = new Map(); // conversation -> timer

function save(conversation) {
  clearTimeout(unsaved.get(conversation));
  unsaved.delete(conversation);
  if (!store.saveConversation(conversation))
    notify("The browser did not keep this chat: its storage is full or switched off. Delete old chats to make room.");
}

function saveSoon(conversation) {
  if (!unsaved.has(conversation)) unsaved.set(conversation, setTimeout(() => save(conversation), saveEvery));
}

/** A conversation by its id; answers that nobody is giving any more are marked so. */
function find(id) {
  if (opened.has(id)) return opened.get(id);
  const conversation = store.loadConversation(id);
  if (conversation === null) return null;
  for (const node of Object.values(conversation.nodes))
    if (["running", "waiting"].includes(node.status)) node.status = "interrupted";
  opened.set(id, conversation);
  return conversation;
}

function openConversation(id) {
  current = find(id) ?? newConversation();
  store.writeCurrent(current.id);
  showConversation();
  toEnd();
  setListOpen(false);
  composer.focus();
}

function newConversation() {
  const conversation = store.newConversation(store.readDefaults());
  opened.set(conversation.id, conversation);
  return conversation;
}

function beginChat() {
  openConversation(Object.keys(current.nodes).length === 0 ? current.id : newConversation().id);
}

function askToRemove(conversation) {
  confirmDialog("Delete this chat?", `“${conversation.title}” is deleted from this browser for good.`, "Delete", () => {
    for (const turn of [...turns.values()]) if (turn.conversation.id === conversation.id) end(turn, "stopped");
    const live = opened.get(conversation.id);
    clearTimeout(unsaved.get(live));
    unsaved.delete(live);
    opened.delete(conversation.id);
    store.removeConversation(conversation.id);
    if (conversation.id === current.id) openConversation(store.listConversations()[0]?.id ?? "");
    else showList();
    announce("Deleted");
  });
}

// --- turns ---------------------------------------------------------------------------------------------------

function send(text) {
  const path = store.shownPath(current);
  const parent = path.at(-1)?.id ?? "";
  if (path.length === 0 && current.title === "New chat") current.title = titleOf(text);
  ask(store.addNode(current, parent, { role: "user", text }));
  return true;
}

function titleOf(text) {
  const line = text.trim().split("\n")[0];
  return line.length > 60 ? `${line.slice(0, 59)}…` : line;
}

function edit(node, text) {
  ask(store.addNode(current, node.parent, { role: "user", text }));
}

function answerCalls(node, results) {
  let last = node;
  node.calls.forEach((call, i) => (last = store.addNode(current, last.id, { role: "tool", text: results[i], call_id: call.call_id })));
  ask(last);
}

function regenerate(node) {
  ask(current.nodes[node.parent]);
}

function select(node) {
  current.selected[node.parent] = node.id;
  save(current);
  showConversation();
}

/** Asks for what comes after a node. */
function ask(node) {
  if (shownTurn() !== undefined) stop();
  const answer = store.addNode(current, node.id, { role: "assistant", status: "running" });
  const turn = { conversation: current, node: answer, request: requestOf(current.settings, store.pathTo(current, node), undefined), timer: 0, painting: false };
  turns.set(answer.id, turn);
  store.writeCurrent(current.id);
  save(current);
  showConversation();
  toEnd();
  announce("Waiting for the answer");
  start(turn);
}

function start(turn) {
  const { node } = turn;
  turn.fresh = true; // what an earlier try left is shown until the new answer begins
  turn.asked_ms = performance.now();
  const sent = connection.begin(node.id, turn.request, (event) => onEvent(turn, event));
  node.status = sent ? "running" : "waiting";
  node.note = sent ? undefined : "The server is not connected. The question is asked when it is back.";
  show(turn);
}

/** Removes what an earlier try of the same answer left, once. */
function begin(turn) {
  if (!turn.fresh) return;
  turn.fresh = false;
  Object.assign(turn.node, { text: "", calls: undefined, tokens: undefined, note: undefined, first_ms: performance.now() - turn.asked_ms });
}

function onEvent(turn, event) {
  const { node } = turn;
  switch (event.type) {
    case "response.created":
      node.model = event.response.model;
      break;
    case "response.output_text.delta":
      begin(turn);
      node.text += event.delta;
      if (event.logprobs?.length > 0) (node.tokens ??= []).push(...event.logprobs);
      break;
    case "response.output_item.added":
    case "response.output_item.done":
      if (event.item.type === "function_call") onCall(turn, event.item);
      break;
    case "response.function_call_arguments.delta": {
      const call = node.calls?.find((one) => one.item_id === event.item_id);
      if (call !== undefined) call.arguments += event.delta;
      break;
    }
    case "response.completed":
      return finish(turn, event.response, "done");
    case "response.incomplete":
      return finish(turn, event.response, event.response.incomplete_details?.reason === "cancelled" ? "stopped" : "cut");
    case "response.failed":
      return fail(turn, event.response.error?.message ?? "unknown error", /shutting down/.test(event.response.error?.message));
    case "error":
      return fail(turn, event.error?.message ?? "unknown error", event.status === 503);
    case "page.lost":
      node.status = "waiting";
      node.note = undefined;
      announce("The connection was lost");
      break;
    case "page.too_large":
      return fail(turn, "the chat is longer than the server takes in one message (`server.max_frame`); begin a new one", false);
  }
  saveSoon(turn.conversation);
  paint(turn);
}

function onCall(turn, item) {
  begin(turn);
  const calls = (turn.node.calls ??= []);
  const known = calls.find((call) => call.item_id === item.id);
  const call = { item_id: item.id, call_id: item.call_id, name: item.name ?? "", arguments: item.arguments ?? "" };
  if (known === undefined) calls.push(call);
  else Object.assign(known, call);
}

function finish(turn, response, status) {
  begin(turn);
  turn.node.usage = response.usage ?? undefined;
  turn.node.lasted_ms = performance.now() - turn.asked_ms - turn.node.first_ms;
  end(turn, status);
  announce(status === "stopped" ? "Stopped" : `Answer: ${turn.node.text.slice(0, 2000)}`);
}

/** `passing`: the server will do later what it did not do now. */
function fail(turn, message, passing) {
  if (passing) {
    turn.node.status = "waiting";
    turn.node.note = `The server says: ${message}. Asking again.`;
    clearTimeout(turn.timer);
    turn.timer = setTimeout(() => connection.state === "open" && start(turn), askAgainAfter);
    return paint(turn);
  }
  turn.node.error = message;
  end(turn, "failed");
  announce(`No answer: ${message}`);
}

function end(turn, status) {
  clearTimeout(turn.timer);
  turns.delete(turn.node.id);
  turn.node.status = status;
  turn.node.note = undefined;
  turn.conversation.changed = Date.now();
  save(turn.conversation);
  if (turn.conversation !== current) return;
  show(turn);
  showRunning();
  showList();
}

function stop() {
  const turn = shownTurn();
  if (turn === undefined) return;
  connection.cancel(turn.node.id);
  end(turn, "stopped");
  announce("Stopped");
}

/** Shows what came, at most 12 times in a second and never for more than an eighth of the time. */
function paint(turn) {
  if (turn.painting) return;
  turn.painting = true;
  setTimeout(() => requestAnimationFrame(() => {
    turn.painting = false;
    const before = performance.now();
    if (turns.get(turn.node.id) === turn) show(turn);
    turn.pause = Math.max(80, 8 * (performance.now() - before));
  }), turn.pause ?? 0);
}

function show(turn) {
  if (turn.conversation !== current) return;
  const follow = nearEnd();
  messages.update(turn.node);
  if (follow) toEnd();
}

// --- wiring --------------------------------------------------------------------------------------------------

function askForKey() {
  keyDialog(connection.state === "locked" ? connection.detail : "", (key, keep) => {
    writeKey(key, keep);
    connection.useKey(key);
  });
}

connection.addEventListener("state", () => {
  showState();
  if (connection.state === "locked") askForKey();
  if (connection.state !== "open") return;
  for (const turn of turns.values()) if (turn.node.status === "waiting") start(turn);
});
connection.addEventListener("models", showModel);
connection.addEventListener("fault", (event) => notify(`The server says: ${event.detail}`));

$("new-chat").addEventListener("click", beginChat);
$("open-list").addEventListener("click", () => setListOpen(!document.body.classList.contains("list-open")));
$("shade").addEventListener("click", () => setListOpen(false));
$("sidebar").addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !document.body.classList.contains("list-open")) return;
  setListOpen(false);
  $("open-list").focus();
});
$("open-settings").addEventListener("click", () => settingsDialog(current, connection.models, {
  onkey: askForKey,
  onsave: (title, settings) => {
    Object.assign(current, { title, settings });
    store.writeDefaults(settings);
    if (Object.keys(current.nodes).length > 0) save(current);
    showConversation();
  },
}));
$("open-snippet").addEventListener("click", () => {
  const path = store.shownPath(current).filter((node) => node.status !== "failed");
  while (path.at(-1)?.role === "assistant") path.pop();
  const nodes = path.length > 0 ? path : [{ role: "user", text: "Hello" }];
  snippetDialog(address("./").href, requestOf(current.settings, nodes, connection.models[0]?.id), connection.key !== "");
});

addEventListener("pagehide", () => {
  for (const conversation of [...unsaved.keys()]) save(conversation);
});
store.onStorageChange((id) => {
  const busy = [...turns.values()].some((turn) => turn.conversation.id === id);
  if (busy) return;
  if (id !== null) opened.delete(id);
  if (id === current.id && store.loadConversation(id) !== null) {
    current = find(id);
    showConversation();
  } else {
    showList();
  }
});

current = find(store.readCurrent() ?? "") ?? newConversation();
showConversation();
toEnd();
connection.start();
composer.focus();
