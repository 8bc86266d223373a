// Conversations as files: JSON that can be read in again, and Markdown to read.
import { make, randomId } from "./dom.js";
import { shownPath } from "./store.js";

const format = "twill-chats";
const mostBytes = 20 * 1024 * 1024;
const mostMessages = 2000; // of a chat; a page that shows more is slow
const statuses = ["done", "stopped", "cut", "failed", "interrupted"];

export function exportJson(conversations) {
  const away = ["tokens", "with_tokens", "response_id", "sequence_number"];
  return JSON.stringify({ format, version: 1, chats: conversations }, (key, value) => (away.includes(key) ? undefined : value), 1);
}

/** The branch that is shown. */
export function exportMarkdown(conversation) {
  const names = { user: "You", assistant: "Answer", tool: "Result of a tool" };
  const parts = [`# ${conversation.title}`];
  if (conversation.settings.instructions) parts.push("## System prompt", conversation.settings.instructions);
  for (const node of shownPath(conversation)) {
    parts.push(`## ${names[node.role]}`, node.text);
    for (const call of node.calls ?? []) parts.push(`Calls \`${call.name}\`:`, `\`\`\`json\n${call.arguments}\n\`\`\``);
  }
  return `${parts.filter((part) => part !== "").join("\n\n")}\n`;
}

/** Gives the user a file of this text. */
export function download(name, type, text) {
  const link = make("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** A file's name made of a title. */
export function fileName(title, ending) {
  const plain = title.replace(/[^\p{L}\p{N} ._-]+/gu, " ").trim().replace(/\s+/g, "-").slice(0, 60);
  return `${plain.replace(/^\.+/, "") || "chat"}.${ending}`;
}

/** The conversations of a file, with ids of their own; throws an Error that says what is wrong with it. */
export async function readFile(file) {
  if (file.size > mostBytes) throw new Error(`${file.name} has ${Math.ceil(file.size / 1048576)} MiB; at most ${mostBytes / 1048576} MiB are read.`);
  return importJson(await file.text(), file.name);
}

export function importJson(text, name) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error(`${name} is not JSON. Choose a file that this page exported.`);
  }
  if (value?.format !== format || value.version !== 1 || !Array.isArray(value.chats))
    throw new Error(`${name} holds no chats. Choose a file that this page exported.`);
  return value.chats.map(readConversation);
}

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const time = (value) => (Number.isFinite(value) ? value : Date.now());

/** What came from a file is taken over member by member; messages that hang on nothing are left out. */
function readConversation(value) {
  if (!isObject(value) || typeof value.title !== "string" || !isObject(value.nodes)) throw new Error("The file holds a chat without a title or messages.");
  const given = Object.values(value.nodes).filter((node) => isObject(node) && typeof node.id === "string" && typeof node.text === "string" &&
    ["user", "assistant", "tool"].includes(node.role));
  if (given.length > mostMessages) throw new Error(`The file holds a chat of ${given.length} messages; at most ${mostMessages} are read.`);
  const below = new Map(); // id of a parent -> nodes
  for (const node of given) {
    if (!below.has(node.parent)) below.set(node.parent, []);
    below.get(node.parent).push(node);
  }
  const conversation = { id: randomId(), title: value.title.slice(0, 200), created: time(value.created), changed: time(value.changed),
    settings: isObject(value.settings) ? readSettings(value.settings) : {}, nodes: {}, selected: {} };
  const ids = new Map([["", ""]]); // old -> new
  const open = [""];
  for (let parent = open.pop(); parent !== undefined; parent = open.pop()) {
    for (const node of below.get(parent) ?? []) {
      if (ids.has(node.id)) continue;
      const id = randomId();
      ids.set(node.id, id);
      conversation.nodes[id] = readNode(node, id, ids.get(parent));
      conversation.selected[ids.get(parent)] = id;
      open.push(node.id);
    }
  }
  if (isObject(value.selected))
    for (const [parent, child] of Object.entries(value.selected))
      if (ids.has(parent) && ids.has(child)) conversation.selected[ids.get(parent)] = ids.get(child);
  if (ids.has(value.dropped)) conversation.dropped = ids.get(value.dropped);
  return conversation;
}

function readNode(node, id, parent) {
  const out = { id, parent, role: node.role, text: node.text, status: statuses.includes(node.status) ? node.status : "interrupted" };
  for (const key of ["model", "thought", "error", "call_id"]) if (typeof node[key] === "string") out[key] = node[key];
  for (const key of ["first_ms", "lasted_ms"]) if (Number.isFinite(node[key])) out[key] = node[key];
  if (isObject(node.usage)) out.usage = Object.fromEntries(Object.entries(node.usage).filter(([, value]) => Number.isFinite(value)));
  if (Array.isArray(node.calls))
    out.calls = node.calls.filter(isObject).map((call) => Object.fromEntries(["item_id", "call_id", "name", "arguments"].map((key) => [key, String(call[key] ?? "")])));
  return out;
}

const kinds = { model: "string", instructions: "string", temperature: "number", top_p: "number", top_k: "number", min_p: "number", repetition_penalty: "number",
  max_output_tokens: "number", seed: "number", logprobs: "boolean" };

function readSettings(value) {
  const out = {};
  for (const [key, kind] of Object.entries(kinds)) if (typeof value[key] === kind) out[key] = value[key];
  if (Array.isArray(value.stop)) out.stop = value.stop.filter((one) => typeof one === "string");
  if (Array.isArray(value.tools)) out.tools = value.tools.filter(isObject);
  return out;
}
