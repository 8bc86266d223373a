// Conversations: trees of messages, kept in the browser's localStorage, one entry each.
//
// A conversation is {id, title, created, changed, settings, nodes, selected}. A node is {id, parent, role, text,
// status, ...}; `selected` names, for a node's id ("" for the root), which of its children is shown; `dropped`, where it
// is set, the last node that is no longer sent, and `counted` the tokens of what was sent when it was set.
import { randomId } from "./dom.js";
import { scope } from "./key.js";

const prefix = `${scope}chat:`;

function read(key) {
  try {
    return JSON.parse(localStorage.getItem(key));
  } catch {
    return null; // damaged, or the browser keeps nothing for this page
  }
}

/** False when the browser did not take it: its storage is full or switched off. */
function write(key, value, replacer) {
  try {
    localStorage.setItem(key, JSON.stringify(value, replacer));
    return true;
  } catch {
    return false;
  }
}

function isConversation(value) {
  return value !== null && typeof value === "object" && typeof value.id === "string" &&
    typeof value.title === "string" && typeof value.nodes === "object" && value.nodes !== null &&
    typeof value.selected === "object" && value.selected !== null;
}

export function newConversation(settings) {
  const now = Date.now();
  return { id: randomId(), title: "New chat", created: now, changed: now, settings: { ...settings }, nodes: {}, selected: {} };
}

/** All that are kept, the newest first. */
export function listConversations() {
  const found = [];
  try {
    for (let i = 0; i < localStorage.length; ++i) {
      const key = localStorage.key(i);
      if (!key.startsWith(prefix)) continue;
      const value = read(key);
      if (isConversation(value)) found.push(value);
    }
  } catch {
    // no storage: nothing is kept
  }
  return found.sort((a, b) => b.changed - a.changed);
}

export function loadConversation(id) {
  const value = read(prefix + id);
  return isConversation(value) ? value : null;
}

/** Whether a conversation holds a text, in its title or in any message. */
export function holds(conversation, wanted) {
  const text = wanted.toLowerCase();
  return conversation.title.toLowerCase().includes(text) || Object.values(conversation.nodes).some((node) => typeof node.text === "string" && node.text.toLowerCase().includes(text));
}

/** Probabilities of tokens stay in memory: they are many times as long as the text. */
export function saveConversation(conversation) {
  return write(prefix + conversation.id, conversation, (key, value) => (key === "tokens" ? undefined : value));
}

/** Takes over the answers of a kept conversation that `mayTake` lets it, and all nodes that are new. */
export function takeAnswers(conversation, kept, mayTake) {
  for (const node of Object.values(kept.nodes)) {
    const own = (conversation.nodes[node.id] ??= {});
    if (own.id !== undefined && (!["running", "waiting", "interrupted"].includes(own.status) || !mayTake(own))) continue;
    for (const key of Object.keys(own)) delete own[key];
    Object.assign(own, node);
  }
}

export function removeConversation(id) {
  try {
    localStorage.removeItem(prefix + id);
  } catch {
    // nothing was kept
  }
}

/** Calls back when another tab changed what is kept: with an id, or null for all, and whether it was removed. */
export function onStorageChange(callback) {
  addEventListener("storage", (event) => {
    if (event.key === null || event.key.startsWith(prefix)) callback(event.key?.slice(prefix.length) ?? null, event.newValue === null);
  });
}

// --- the tree ------------------------------------------------------------------------------------------------

export function childrenOf(conversation, parent) {
  return Object.values(conversation.nodes).filter((node) => node.parent === parent);
}

/** Adds a node below `parent` ("" for the root) and shows it. */
export function addNode(conversation, parent, fields) {
  const node = { id: randomId(), parent, text: "", status: "done", ...fields };
  conversation.nodes[node.id] = node;
  conversation.selected[parent] = node.id;
  conversation.changed = Date.now();
  return node;
}

/** The nodes that are shown, from the first. */
export function shownPath(conversation) {
  const path = [];
  let at = "";
  while (path.length < 10_000) {
    const next = conversation.nodes[conversation.selected[at]] ?? childrenOf(conversation, at).at(-1);
    if (next === undefined) break;
    path.push(next);
    at = next.id;
  }
  return path;
}

/** The nodes from the first to this one. */
export function pathTo(conversation, node) {
  const path = [];
  for (let at = node; at !== undefined && path.length < 10_000; at = conversation.nodes[at.parent]) path.unshift(at);
  return path;
}

// --- what is kept beside the conversations -------------------------------------------------------------------

export function readDefaults() {
  const value = read(`${scope}settings`);
  return value !== null && typeof value === "object" ? value : {};
}

export function writeDefaults(settings) {
  return write(`${scope}settings`, settings);
}

export function readCurrent() {
  const value = read(`${scope}current`);
  return typeof value === "string" ? value : null;
}

export function writeCurrent(id) {
  write(`${scope}current`, id);
}
