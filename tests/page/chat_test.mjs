// Chats as files, files in messages, what is dropped from a full context. node chat_test.mjs FOLDER_OF_THE_PAGE
import assert from "node:assert/strict";
import { load } from "./load.mjs";

globalThis.location = { href: "http://127.0.0.1/" };
const { exportJson, exportMarkdown, fileName, importJson, readFile } = await load("transfer.js");
const { fenced, readText, splitFiles } = await load("attachments.js");
const { contextOf, lastToDrop, sentOf } = await load("context.js");
const { messagesOf, samplingOf } = await load("settings.js");
const { addNode, holds, newConversation, shownPath } = await load("store.js");
const { parse } = await load("blocks.js");

// --- chats as files ------------------------------------------------------------------------------------------

const chat = newConversation({ instructions: "Be brief.", temperature: 0.5, stop: ["x"], tools: [{ type: "function", name: "f" }] });
chat.title = "Looms";
const question = addNode(chat, "", { role: "user", text: "What is a loom?" });
const first = addNode(chat, question.id, { role: "assistant", text: "A machine.", model: "m", usage: { output_tokens: 3 }, first_ms: 5, tokens: [{ token: "A" }] });
const second = addNode(chat, question.id, { role: "assistant", text: "", status: "cut", calls: [{ item_id: "i", call_id: "c", name: "f", arguments: "{}" }] });
addNode(chat, second.id, { role: "tool", text: "42", call_id: "c" });
const textsOf = (one) => shownPath(one).map((node) => [node.role, node.status, node.text]);

const text = exportJson([chat]);
assert.ok(!text.includes('"tokens"'), "probabilities stay out");
const [copy] = importJson(text, "a.json");
assert.notEqual(copy.id, chat.id, "an import is a chat of its own");
assert.deepEqual([copy.title, copy.settings, textsOf(copy)], [chat.title, chat.settings, textsOf(chat)]);
assert.deepEqual(Object.values(copy.nodes).find((node) => node.text === "A machine.").usage, { output_tokens: 3 });
assert.equal(Object.keys(copy.nodes).length, 4);
chat.selected[question.id] = first.id;
assert.deepEqual(textsOf(importJson(exportJson([chat]), "a.json")[0]).length, 2, "the branch that is shown is kept");
assert.equal(exportMarkdown(chat), "# Looms\n\n## System prompt\n\nBe brief.\n\n## You\n\nWhat is a loom?\n\n## Answer\n\nA machine.\n");
assert.equal(fileName("a/b: ../c?", "md"), "a-b-..-c.md");
assert.equal(fileName("///", "md"), "chat.md");
assert.ok(holds(chat, "LOOM?") && holds(chat, "machine") && !holds(chat, "weft"));

// A file is as hostile as an answer.
for (const [bad, says] of [["", /is not JSON/], ["{}", /holds no chats/], ["[]", /holds no chats/], ["null", /holds no chats/], ['{"format":"twill-chats","version":2,"chats":[]}', /holds no chats/],
  ['{"format":"twill-chats","version":1,"chats":[1]}', /without a title/], ['{"format":"twill-chats","version":1,"chats":[{"title":1,"nodes":{}}]}', /without a title/],
  ['{"format":"twill-chats","version":1,"chats":[{"title":"a","nodes":[]}]}', /without a title/]])
  assert.throws(() => importJson(bad, "a.json"), says, bad);
const file = (nodes, more = {}) => JSON.stringify({ format: "twill-chats", version: 1, chats: [{ title: "t", nodes, ...more }] });
const message = (id, parent, more = {}) => ({ id, parent, role: "user", text: id, status: "done", ...more });
const imported = (nodes, more) => importJson(file(nodes, more), "a.json")[0];
assert.equal(Object.keys(imported({ a: message("a", "b"), b: message("b", "a") }).nodes).length, 0, "what hangs on itself is left out");
assert.equal(Object.keys(imported({ a: message("a", ""), b: message("a", "a"), c: message("c", "gone"), d: null, e: 1, f: message("f", "", { text: 1 }), g: message("g", "", { role: "system" }) }).nodes).length, 1);
const odd = importJson(`{"format":"twill-chats","version":1,"chats":[{"title":"t","nodes":{"__proto__":${JSON.stringify(message("__proto__", ""))}},"selected":{"":"__proto__","__proto__":"x"},
  "settings":{"__proto__":{"temperature":1},"temperature":"hot","tools":"x","stop":[1,"a"],"logprobs":true}}]}`, "a.json")[0];
assert.deepEqual([textsOf(odd), odd.settings], [[["user", "done", "__proto__"]], { stop: ["a"], logprobs: true }]);
assert.equal(imported({ a: message("a", "", { status: "running", calls: [null, { name: 1 }], usage: { output_tokens: "many" }, evil: 1 }) }).changed > 0, true);
const [node] = Object.values(imported({ a: message("a", "", { status: "running", calls: [null, { name: 1 }], usage: { output_tokens: "many" }, evil: 1 }) }).nodes);
assert.deepEqual([node.status, node.calls, node.usage, node.evil], ["interrupted", [{ item_id: "", call_id: "", name: "1", arguments: "" }], {}, undefined]);
const long = Object.fromEntries(Array.from({ length: 2000 }, (_, i) => [`n${i}`, message(`n${i}`, i === 0 ? "" : `n${i - 1}`)]));
const began = performance.now();
assert.equal(shownPath(imported(long)).length, 2000);
assert.deepEqual(Object.keys(imported(long).selected).length, 2000, "no search for what is shown");
assert.ok(performance.now() - began < 2000);
assert.throws(() => imported({ ...long, more: message("more", "n1") }), /a chat of 2001 messages; at most 2000/);
await assert.rejects(readFile({ name: "big.json", size: 30 * 1024 * 1024 }), /at most 20 MiB/);

// --- files in messages ---------------------------------------------------------------------------------------

const asFile = (bytes, name = "a.txt") => new File([bytes], name);
assert.equal(await readText(asFile("ä\tb\r\n\u001b[1m")), "ä\tb\r\n\u001b[1m");
for (const bytes of [new Uint8Array([0x89, 0x50, 0x4e, 0x47]), new Uint8Array([0xff, 0xfe, 0x41, 0]), new Uint8Array([65, 0, 66]), "a\u0001"])
  await assert.rejects(readText(asFile(bytes)), /binary files cannot be read/);
await assert.rejects(readText(asFile("x".repeat(256 * 1024 + 1))), /at most 256 KiB/);
for (const inner of ["a\nb\n", "```\nfence\n```", "`````x", "", "  ```` y", "\n\n", "~~~"]) {
  const block = fenced("my file.py", inner);
  const whole = `${block}\n\n${fenced("b.c", inner)}\n\nWhat is it?`;
  assert.deepEqual(splitFiles(whole), [{ name: "my-file.py", text: inner.replace(/\n$/, "") }, { name: "b.c", text: inner.replace(/\n$/, "") }, "What is it?"], inner);
  assert.deepEqual(parse(whole).map((one) => one.type), ["code", "code", "paragraph"], "Markdown sees the same blocks");
}
assert.deepEqual(splitFiles("a\n```\nplain\n```\n```x\nnot closed"), ["a\n```\nplain\n```\n```x\nnot closed"]);
for (const hostile of ["```x\n".repeat(50_000), "````x\n```y\n".repeat(20_000), "`".repeat(300_000)]) {
  const start = performance.now();
  splitFiles(hostile);
  fenced("a", hostile);
  assert.ok(performance.now() - start < 1000);
}

// --- a full context ------------------------------------------------------------------------------------------

const turn = (n, size) => [{ id: `u${n}`, role: "user", text: "", size }, { id: `a${n}`, role: "assistant", text: "", size }];
const path = [turn(0, 50), turn(1, 10), turn(2, 10), [{ id: "u3", role: "user", text: "", size: 10 }]].flat();
let counts = 0;
const count = async (nodes) => (counts++, nodes.reduce((sum, one) => sum + one.size, 0));
assert.equal(await lastToDrop(path, 60, count), "a0");
assert.equal(await lastToDrop(path, 49, count), "a1");
assert.equal(await lastToDrop(path, 10, count), "a2");
assert.equal(await lastToDrop(path, 9, count), null);
assert.equal(await lastToDrop([path[0]], 9, count), null);
counts = 0;
assert.equal(await lastToDrop(Array.from({ length: 1000 }, (_, n) => turn(n, 1)).flat(), 100, count), "a949");
assert.ok(counts <= 11, "few counts, however many turns");
assert.deepEqual(sentOf({ dropped: "a1" }, path).map((one) => one.id), ["u2", "a2", "u3"]);
assert.equal(sentOf({ dropped: "elsewhere" }, path).length, path.length, "another branch has its own");
assert.deepEqual(contextOf({}, [{ id: "a", usage: { input_tokens: 5, output_tokens: 2, total_tokens: 7 } }, { id: "b" }], { max_model_len: 10 }), { used: 7, most: 10 });
assert.deepEqual(contextOf({ counted: { last: "b", tokens: 3 } }, [{ id: "b" }], undefined), { used: 3, most: null });
assert.deepEqual(contextOf({}, [], undefined), { used: null, most: null });

assert.deepEqual(messagesOf({ instructions: "s" }, [{ role: "user", text: "q" }, { role: "assistant", text: "", calls: [{ call_id: "c", name: "f", arguments: "{}" }] }, { role: "tool", call_id: "c", text: "r" }]),
  [{ role: "system", content: "s" }, { role: "user", content: "q" }, { role: "assistant", content: "", tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }] },
    { role: "tool", tool_call_id: "c", content: "r" }]);
assert.deepEqual(samplingOf({ temperature: 0, stop: ["a"], model: "m", instructions: "x" }), { temperature: 0, stop: ["a"] });
