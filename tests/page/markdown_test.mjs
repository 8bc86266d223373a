// What parse() makes of Markdown, hostile Markdown included; snippets. node markdown_test.mjs FOLDER_OF_THE_PAGE
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

// The modules go in as data: addresses, so that node takes them for modules without a package.json.
const loaded = new Map();
function load(name) {
  if (loaded.has(name)) return loaded.get(name);
  const text = readFileSync(`${process.argv[2]}/${name}`, "utf8").replace(/from "\.\/([\w.]+)"/g, (_, other) => `from "${load(other)}"`);
  const url = `data:text/javascript;base64,${Buffer.from(text).toString("base64")}`;
  loaded.set(name, url);
  return url;
}
const { parse, parseSpans, safeHref } = await import(load("markdown.js"));
const { colourJson, indentJson, isJson } = await import(load("json.js"));
const { curlSnippet, pythonLiteral } = await import(load("snippets.js"));
const { readField, requestOf, fields } = await import(load("settings.js"));

const types = (text) => parse(text).map((block) => block.type);
const spans = (text) => JSON.stringify(parseSpans(text));

// Blocks.
assert.deepEqual(types("# A\n\ntext\nmore\n\n- x\n- y\n\n1. z\n\n> q\n\n---\n\n```js\ncode\n```"),
  ["heading", "paragraph", "list", "list", "quote", "rule", "code"]);
assert.deepEqual(types("| a | b |\n|---|:-:|\n| 1 | 2 |\nend"), ["table"]);
assert.deepEqual(parse("| a | b |\n|---|--:|\n| `x` | 2 \\| 3 |")[0].rows, [["`x`", "2 | 3"]]);
assert.equal(parse("```\nnot closed\n<b>")[0].text, "not closed\n<b>");
assert.deepEqual(parse("- a\n  - b\n    - c\n- d")[0].items.length, 2);
assert.deepEqual(parse("- a\n  - b")[0].items[0].blocks.map((b) => b.type), ["paragraph", "list"]);
assert.deepEqual(parse("2. a\n3. b")[0].start, 2);
assert.deepEqual(types("In 1989.\n1990. was next"), ["paragraph"]);
assert.deepEqual(parse("<think>\nhm\n</think>\nSo: 4").map((b) => [b.type, b.text]), [["thought", "hm"], ["paragraph", "So: 4"]]);
assert.deepEqual(parse('<tool_call>{"name": "f"}</tool_call><tool_call>{"name": "g"}').map((b) => [b.text, b.closed]),
  [['{"name": "f"}', true], ['{"name": "g"}', false]]);
assert.deepEqual(parse("##### deep\n\n# top").map((b) => b.level), [3, 3]); // no level is skipped

// Spans.
assert.equal(spans("a **b *c* d** `e*f*`"), JSON.stringify(["a ", { type: "strong", spans: ["b ", { type: "emphasis", spans: ["c"] }, " d"] }, " ",
  { type: "code", text: "e*f*" }]));
assert.equal(spans("2 * 3 * 4 and snake_case_name"), '["2 * 3 * 4 and snake_case_name"]');
assert.equal(spans("***x***"), JSON.stringify([{ type: "emphasis", spans: [{ type: "strong", spans: ["x"] }] }]));
assert.equal(spans("\\*no\\*"), '["*no*"]');
assert.equal(parseSpans("see https://a.example/b_(c). Yes")[1].href, "https://a.example/b_(c)");
assert.equal(parseSpans("[t](https://a.example 'title')")[0].href, "https://a.example/");

// Targets that may not be followed are text.
for (const target of ["javascript:alert(1)", "JaVaScRiPt:alert(1)", "java\tscript:alert(1)", " javascript:alert(1)", "data:text/html,x", "vbscript:x",
  "file:///etc/passwd", "blob:https://a/b", "//a.example", "/v1/models", "x.html", "view-source:https://a", ""])
  assert.equal(safeHref(target), null, target);
assert.ok(!spans("[x](javascript:alert(1)) ![y](data:text/html,z) <javascript:alert(1)>").includes('"link"'));
assert.ok(spans("![p](https://a.example/p.png)").includes('"image: p"'));

// No text takes long: each of these has a million characters or nests without end. The bound is wide; all take well under a second.
const n = 200_000;
const hostile = ["*a ".repeat(n), "**a ".repeat(n), "_a ".repeat(n), "`".repeat(n), "` ``".repeat(n / 2), "[".repeat(n), "[a](".repeat(n / 4), "![".repeat(n / 2),
  "> ".repeat(n / 2), "- ".repeat(n / 2), `${"  ".repeat(500)}- x\n`.repeat(200), "|".repeat(n) + "\n" + "|-".repeat(900), "-".repeat(n) + " x", "- ".repeat(3) + " ".repeat(n) + "x",
  "# " + " ".repeat(n) + "x", "# " + "#".repeat(n) + "x", "```" + " ".repeat(n) + "`", "http://" + ".".repeat(n), "http://a" + ")".repeat(n), "<".repeat(n),
  "\\".repeat(n), "<think>".repeat(n / 8), "<think></think>".repeat(n / 16), "a\n".repeat(n / 2), "~~a ".repeat(n / 4), "*".repeat(n), "*a_".repeat(n / 3), "***a** ".repeat(n / 7),
  "|a\n|-\n".repeat(n / 6), "1. ".repeat(n / 3), "\t".repeat(n) + "x", "|" + " ".repeat(n) + "\n-" + " ".repeat(n) + "x"];
for (const text of hostile) {
  const began = performance.now();
  const walk = (blocks) => blocks.forEach((b) => (b.text !== undefined && parseSpans(b.text), b.blocks && walk(b.blocks), b.items?.forEach((i) => walk(i.blocks))));
  walk(parse(text));
  const took = performance.now() - began;
  if (process.env.TIMES) console.log(took.toFixed(0), JSON.stringify(text.slice(0, 20)));
  assert.ok(took < 5000, `${took.toFixed(0)} ms for ${JSON.stringify(text.slice(0, 20))}`);
}

// JSON keeps its numbers and strings as they were written.
assert.equal(indentJson('{"a":[1,2.50,12345678901234567890],"b":{},"c":"\\u0041"}'),
  '{\n  "a": [\n    1,\n    2.50,\n    12345678901234567890\n  ],\n  "b": {},\n  "c": "\\u0041"\n}');
assert.ok(isJson(" [1] ") && !isJson("1") && !isJson("{a}"));

const element = { append() {}, setAttribute() {}, addEventListener() {} };
globalThis.document = { createElement: () => element, createDocumentFragment: () => element };
colourJson('{"a": 1}');
assert.equal(indentJson("[1]"), "[\n  1\n]", "colouring leaves no trace");

// Snippets quote what stands in them.
assert.ok(curlSnippet("http://h/", { input: "it's" }, false).includes(`"it'\\''s"`));
assert.equal(pythonLiteral({ a: true, b: null, c: ["x"] }), '{"a": True, "b": None, "c": ["x"]}');

// Requests leave out what is not set, and texts mean what the fields say.
assert.deepEqual(requestOf({ temperature: 0, logprobs: true }, [{ role: "user", text: "hi" }], "m"),
  { model: "m", input: [{ role: "user", content: "hi" }], store: false, temperature: 0, include: ["message.output_text.logprobs"], top_logprobs: 5 });
const field = (key) => fields.find((one) => one[0] === key);
assert.throws(() => readField(field("temperature"), "hot"), /must be a number/);
assert.throws(() => readField(field("tools"), "{}"), /must be a list/);
assert.equal(readField(field("seed"), " "), undefined);
