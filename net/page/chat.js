// The page: the conversations, and what connects them and their turns to the server and to the screen.
import { Composer } from "./composer.js";
import { Connection } from "./connection.js";
import { contextOf, lastToDrop, sentOf, showContext } from "./context.js";
import { confirmDialog, keyDialog } from "./dialog.js";
import { announce, button, make } from "./dom.js";
import { readKey, writeKey } from "./key.js";
import { address } from "./link.js";
import { MessageList } from "./messages.js";
import { messagesOf, requestOf } from "./settings.js";
import { Sidebar } from "./sidebar.js";
import * as store from "./store.js";
import { forgetNoted } from "./stored.js";
import { applyTheme, themeChoice } from "./theme.js";
import { isRunning, Turns } from "./turns.js";

const $ = (id) => document.getElementById(id);
const saveEvery = 500; // milliseconds, while an answer comes

applyTheme();
const connection = new Connection(readKey());
const opened = new Map(); // conversations that were opened since the page was loaded, by id
let current = null;

// --- the screen --------------------------------------------------------------------------------------------

const scroll = $("scroll");
const turns = new Turns(connection, {
  show: (turn, now) => (now ? show(turn) : paint(turn)),
  ended: onEnded,
  keep: save,
  keepSoon: saveSoon,
  kept: (turn) => store.loadConversation(turn.conversation.id)?.nodes[turn.node.id],
  reload: takeKept,
});
const messages = new MessageList($("log"), { regenerate, goOn, edit, select, answerCalls, sendAll, withExtras, offers: (node) => fullOffers(node),
  isLeaf: (node) => store.childrenOf(current, node.id).length === 0 });
const composer = new Composer({ onsend: send, onstop: stop, onfault: notify });
const sidebar = new Sidebar({ open: openConversation, options: showOptions });

function nearEnd() {
  return scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 80;
}

function toEnd() {
  scroll.scrollTop = scroll.scrollHeight;
}

function showConversation() {
  const path = store.shownPath(current);
  messages.show(path, (node) => store.childrenOf(current, node.parent), current.dropped);
  if (path.length === 0) $("log").replaceChildren(welcome());
  $("title").textContent = current.title;
  document.title = `${current.title} · twill`;
  showSystemHint();
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

function showSystemHint() {
  const text = current.settings.instructions ?? "";
  $("system-hint").hidden = text === "";
  $("system-hint").replaceChildren(make("span", {}, `System prompt: ${text.length > 100 ? `${text.slice(0, 99)}…` : text}`),
    button("Change", openSettings, { "aria-label": "Change the system prompt" }));
}

function showList() {
  sidebar.show(current);
}

function servedModel() {
  return connection.models.find((model) => model.id === current.settings.model) ?? (current.settings.model === undefined ? connection.models[0] : undefined);
}

function showModel() {
  $("model-name").textContent = current.settings.model ?? connection.models[0]?.id ?? "";
  showContext(contextOf(current, store.shownPath(current), servedModel()), () => fullOffers());
}

function shownTurn() {
  return store.shownPath(current).map((node) => turns.of(node)).find((turn) => turn !== undefined);
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
  const close = () => {
    notify("");
    composer.focus();
  };
  notice.replaceChildren(make("span", {}, text), ...(text === "" ? [] : [action === undefined ? button("Close", close) : button(action, onaction)]));
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
  if (!opened.has(conversation.id)) return true; // deleted
  const kept = store.saveConversation(conversation);
  if (!kept) notify("The browser did not keep this chat: its storage is full or switched off. Delete old chats to make room.");
  return kept;
}

function saveSoon(conversation) {
  if (!unsaved.has(conversation)) unsaved.set(conversation, setTimeout(() => save(conversation), saveEvery));
}

/** A conversation by its id. */
function find(id) {
  if (opened.has(id)) return opened.get(id);
  const conversation = store.loadConversation(id);
  if (conversation === null) return null;
  opened.set(id, conversation);
  takeUp(conversation);
  return conversation;
}

/** Answers that the server stores go on; others that nobody is giving any more are marked so. */
function takeUp(conversation) {
  for (const node of Object.values(conversation.nodes)) {
    if (!isRunning(node)) continue;
    if (node.response_id !== undefined) turns.takeUp(conversation, node);
    else if (turns.of(node) === undefined) node.status = "interrupted";
  }
}

/** Takes over what another tab has kept, or `removed`. */
function takeKept(id, removed = false) {
  const kept = id === null || removed ? null : store.loadConversation(id);
  if (kept !== null && turns.isBusy(id)) {
    store.takeAnswers(opened.get(id), kept, (node) => turns.of(node)?.elsewhere ?? true);
    takeUp(opened.get(id));
  } else if (opened.delete(id) && kept !== null) {
    const found = find(id);
    if (id === current.id) current = found;
  } else if (id !== null && kept === null) {
    turns.stopAllOf(id);
    store.removeConversation(id); // this tab may have saved it since
    if (id === current.id) return openConversation(store.listConversations()[0]?.id ?? "");
  }
  if (id === current.id) showConversation();
  else showList();
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

function showOptions(kept) {
  const conversation = opened.get(kept.id) ?? find(kept.id) ?? kept;
  withExtras(({ chatDialog, download, exportJson, exportMarkdown, fileName }) => chatDialog(conversation, {
    onrename: (title) => {
      conversation.title = title;
      save(conversation);
      showConversation();
    },
    onexport: (kind) => {
      if (kind === "json") download(fileName(conversation.title, "json"), "application/json", exportJson([conversation]));
      else download(fileName(conversation.title, "md"), "text/markdown", exportMarkdown(conversation));
      announce("Exported");
    },
    onremove: () => askToRemove(conversation),
  }));
}

function askToRemove(conversation) {
  confirmDialog("Delete this chat?", `“${conversation.title}” is deleted from this browser for good.`, "Delete", () => {
    opened.delete(conversation.id);
    turns.stopAllOf(conversation.id);
    store.removeConversation(conversation.id);
    if (conversation.id === current.id) openConversation(store.listConversations()[0]?.id ?? "");
    else showList();
    announce("Deleted");
  });
}

/** Does what needs what is not loaded with the page. */
async function withExtras(use) {
  const extras = await import("./extras.js").catch(() => null);
  if (extras === null) notify("The server does not answer, and this part of the page was not loaded yet.");
  else use(extras);
}

async function importFile(file, readFile) {
  try {
    const found = await readFile(file);
    for (const conversation of found) {
      opened.set(conversation.id, conversation);
      if (!save(conversation)) return;
    }
    if (found.length > 0) openConversation(found[0].id);
    announce(`Imported ${found.length} ${found.length === 1 ? "chat" : "chats"}`);
  } catch (error) {
    notify(error.message);
  }
}

// --- turns ---------------------------------------------------------------------------------------------------

function send(text, written) {
  if (connection.state === "open") notify("");
  const path = store.shownPath(current);
  const parent = path.at(-1)?.id ?? "";
  if (path.length === 0 && current.title === "New chat") current.title = titleOf(written.trim() === "" ? text : written);
  ask(store.addNode(current, parent, { role: "user", text }));
}

function titleOf(text) {
  const line = text.trim().split("\n")[0].replace(/^`+/, "");
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
  turns.ask(current, answer, requestOf(current.settings, sentOf(current, store.pathTo(current, node)), undefined));
  store.writeCurrent(current.id);
  save(current);
  showConversation();
  toEnd();
  announce("Waiting for the answer");
}

/** Goes on with an answer that was cut. */
function goOn(node) {
  if (shownTurn() !== undefined) stop();
  const conversation = current;
  withExtras(({ continueAnswer }) => {
    if (turns.of(node) !== undefined) return; // clicked twice
    const nodes = sentOf(conversation, store.pathTo(conversation, conversation.nodes[node.parent]));
    turns.goOn(conversation, node, (onevent) => continueAnswer(connection, { settings: conversation.settings, nodes, thought: node.thought, text: node.text,
      model: servedModel()?.id ?? conversation.settings.model }, onevent));
    showRunning();
    composer.focus();
    announce("Waiting for the rest of the answer");
  });
}

function stop() {
  const turn = shownTurn();
  if (turn !== undefined) turns.stop(turn);
}

function onEnded(turn) {
  show(turn);
  showRunning();
  showList();
}

/** Shows what came, at most 12 times in a second and never for more than an eighth of the time. */
function paint(turn) {
  if (turn.painting) return;
  turn.painting = true;
  setTimeout(() => requestAnimationFrame(() => {
    turn.painting = false;
    const before = performance.now();
    if (!turn.over) show(turn);
    turn.pause = Math.max(80, 8 * (performance.now() - before));
  }), turn.pause ?? 0);
}

function show(turn) {
  if (turn.conversation !== current) return;
  const follow = nearEnd();
  messages.update(turn.node);
  if (turn.over) showModel();
  if (follow) toEnd();
}

// --- a full context ------------------------------------------------------------------------------------------

/** What to do when the context is full; `failed` is the answer that it kept from coming. */
function fullOffers(failed) {
  return [button("New chat", beginChat), button(failed === undefined ? "Drop the oldest turns" : "Drop the oldest turns and ask again", () => dropOldest(failed))];
}

async function dropOldest(failed) {
  const conversation = current;
  const path = failed === undefined ? store.shownPath(conversation) : store.pathTo(conversation, conversation.nodes[failed.parent]);
  const model = servedModel();
  const tokensOf = async (nodes) => {
    const reply = await connection.ask("tokenize", { model: model?.id, messages: messagesOf(conversation.settings, nodes), tools: conversation.settings.tools });
    if (reply.body === undefined) throw new Error(reply.message);
    return reply.body.count;
  };
  try {
    const nodes = sentOf(conversation, path);
    const most = model?.max_model_len ?? 0;
    const last = (await lastToDrop(nodes, most / 2, tokensOf)) ?? (await lastToDrop(nodes, most - (conversation.settings.max_output_tokens ?? 64), tokensOf));
    if (last === null) return notify("The newest message alone fills the context. Shorten it, or begin a new chat.");
    conversation.dropped = last;
    conversation.counted = { last: path.at(-1).id, tokens: await tokensOf(sentOf(conversation, path)) };
  } catch (error) {
    return notify(`The oldest turns were not dropped: ${error.message}`);
  }
  save(conversation);
  if (conversation !== current) return;
  if (failed !== undefined) return regenerate(failed);
  showConversation();
  announce("The oldest turns are no longer sent");
  composer.focus();
}

/** Takes back that turns were dropped. */
function sendAll() {
  delete current.dropped;
  delete current.counted;
  save(current);
  showConversation();
}

// --- wiring --------------------------------------------------------------------------------------------------

function askForKey() {
  keyDialog(connection.state === "locked" ? connection.detail : "", (key, keep) => {
    writeKey(key, keep);
    connection.useKey(key);
  });
}

function openSettings() {
  withExtras(({ settingsDialog }) => settingsDialog(current, connection.models, {
    onkey: askForKey,
    onsave: (title, settings) => {
      Object.assign(current, { title, settings });
      store.writeDefaults(settings);
      if (Object.keys(current.nodes).length > 0) save(current);
      showConversation();
    },
  }));
}

connection.addEventListener("state", () => {
  showState();
  if (connection.state === "locked") askForKey();
  if (connection.state !== "open") return;
  turns.resume();
  forgetNoted(connection);
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
$("open-settings").addEventListener("click", openSettings);
$("open-help").addEventListener("click", () => withExtras(({ helpDialog }) => helpDialog(address("./v1").href)));
$("export-all").addEventListener("click", () => withExtras(({ download, exportJson }) => {
  download(`twill-chats-${new Date().toISOString().slice(0, 10)}.json`, "application/json", exportJson(store.listConversations()));
  announce("Exported");
}));
$("import").addEventListener("click", () => $("import-file").click());
$("import-file").addEventListener("change", () => withExtras(async ({ readFile }) => {
  const [file] = $("import-file").files;
  if (file !== undefined) await importFile(file, readFile);
  $("import-file").value = "";
}));
$("to-end").addEventListener("click", () => {
  toEnd();
  composer.focus();
});
scroll.addEventListener("scroll", () => ($("to-end").hidden = nearEnd()), { passive: true });
$("theme-place").replaceWith(themeChoice());
$("open-snippet").addEventListener("click", () => {
  const path = store.shownPath(current).filter((node) => node.status !== "failed");
  while (path.at(-1)?.role === "assistant") path.pop();
  const nodes = path.length > 0 ? path : [{ role: "user", text: "Hello" }];
  const request = requestOf(current.settings, sentOf(current, nodes), connection.models[0]?.id);
  withExtras(({ snippetDialog }) => snippetDialog(address("./").href, request, connection.key !== ""));
});

addEventListener("pagehide", () => {
  for (const conversation of [...unsaved.keys()]) save(conversation);
  turns.release();
});
addEventListener("pageshow", (event) => event.persisted && location.reload()); // other tabs may have filled its answers
store.onStorageChange(takeKept);

current = find(store.readCurrent() ?? "") ?? newConversation();
for (const { id, nodes } of store.listConversations()) if (Object.values(nodes).some(isRunning)) find(id);
showConversation();
toEnd();
connection.start();
composer.focus();
