// What parse() makes of Markdown, hostile Markdown included; formulas, code, snippets. node markdown_test.mjs FOLDER_OF_THE_PAGE
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { load } from "./load.mjs";

const { parse } = await load("blocks.js");
const { parseSpans, safeHref } = await load("spans.js");
const { decodeEntities } = await load("entities.js");
const { codeParts } = await load("code.js");
const { texTree } = await load("tex.js");
const { colourJson, indentJson, isJson } = await load("json.js");
const { curlSnippet, pythonLiteral } = await load("snippets.js");
const { readField, requestOf, fields } = await load("settings.js");

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

// Code, formulas and escapes hold no marks: emphasis and links end behind them.
assert.equal(spans("*a `*` b*"), JSON.stringify([{ type: "emphasis", spans: ["a ", { type: "code", text: "*" }, " b"] }]));
assert.equal(spans("*x \\* y*"), JSON.stringify([{ type: "emphasis", spans: ["x * y"] }]));
assert.equal(spans("[`]`](https://a.example)"), JSON.stringify([{ type: "link", href: "https://a.example/", spans: [{ type: "code", text: "]" }] }]));
assert.equal(spans("[![p](https://a.example/p.png)](https://a.example)"), JSON.stringify([{ type: "link", href: "https://a.example/", spans: ["image: p"] }]));

// Character references are what they stand for, but in code, and never make a mark or a target.
assert.equal(spans("&lt;b&gt; &amp;amp; &#42;x&#42; &#x1F600; &#0; &bogus; &"), '["<b> &amp; *x* 😀 \ufffd &bogus; &"]');
assert.equal(spans("`&lt;`"), '[{"type":"code","text":"&lt;"}]');
assert.equal(parseSpans("[a](https://a.example/?x=1&amp;y=2)")[0].href, "https://a.example/?x=1&y=2");
assert.ok(!spans("[a](javascript&colon;alert(1)) [b](&#106;avascript:alert(1)) [c](java\\script:alert(1))").includes('"link"'));
for (const [name, code] of Object.entries(JSON.parse(process.argv[3] ?? "{}"))) assert.equal(decodeEntities(`&${name};`), String.fromCodePoint(code), name);

// Footnotes stand at the end, in the order in which they are named; what is not defined stays text.
const noted = parse("A[^b] and[^a] `[^c]`.\n\n[^a]: first\n[^b]: second\n\n    more of it\n\nThe end.[^z]");
assert.deepEqual(noted.map((b) => b.type), ["paragraph", "paragraph", "notes"]);
assert.deepEqual(noted[2].items.map((item) => [item.name, item.blocks.map((b) => b.text)]), [["b", ["second", "more of it"]], ["a", ["first"]]]);
assert.deepEqual(parseSpans("x[^1]"), ["x", { type: "note", name: "1" }]);

// Formulas come out untouched, wherever they stand, whatever of Markdown's they hold.
const inText = (list) => list.flatMap((one) => (one.type === "math" ? [one.tex] : one.spans ? inText(one.spans) : []));
const inBlock = (block) => {
  if (block.type === "math") return [block.tex];
  if (block.type === "thought") return formulas(block.text);
  const texts = [...(block.type === "code" || block.text === undefined ? [] : [block.text]), ...(block.header ?? []), ...(block.rows ?? []).flat()];
  return [...texts.flatMap((text) => inText(parseSpans(text))), ...(block.blocks ?? []).flatMap(inBlock), ...(block.items ?? []).flatMap((item) => item.blocks.flatMap(inBlock))];
};
const formulas = (text) => parse(text).flatMap(inBlock);
const inside = ["a_1 * b_2 * c_3", "x^*_i", "\\{a, b\\} \\| c \\|", "**k**", "[a](b)", "~~n~~", "`q`", "a < b > c", "\\alpha\\_\\beta", "&lt;", "<think>", "x \\\\ y", "h_{http://a}", "!", "a | b"];
const frames = ["F", "text F text", "*F*", "_text F_", "**F** and *F*", "- F", "> F", "# F", "1. a\n   - F", "| a | b |\n|---|---|\n| x | F |", "text\nF\ntext", "~~F~~", "(F), F.",
  "[F](https://a.example)", "<think>\nF\n</think>"];
for (const tex of inside)
  for (const frame of frames)
    for (const [open, close] of [["\\(", "\\)"], ["\\[", "\\]"], ["$$", "$$"]]) {
      const text = frame.replaceAll("F", () => open + tex + close);
      assert.deepEqual(formulas(text), Array(frame.split("F").length - 1).fill(tex), JSON.stringify(text));
    }
const lines = "a\n- b_1\n+ c\n= d\n# e\n> f\n1. g\n| h |";
for (const text of [`\\[\n${lines}\n\\]`, `$$\n${lines}\n$$`, `Text:\n\\[${lines}\\]\nmore`, `- x\n  $$\n  ${lines.replaceAll("\n", "\n  ")}\n  $$`, `so \\(${lines}\\) it is`])
  assert.deepEqual(formulas(text), [lines], text);
assert.deepEqual(formulas("\\begin{align}\na &= b \\\\\n- c &= d\n\\end{align}"), ["\\begin{align}\na &= b \\\\\n- c &= d\n\\end{align}"]);
assert.deepEqual(parse("\\[ x \\].\n$$y$$, text").map((b) => b.tex ?? b.text), ["x.", "y", ", text"]);
assert.deepEqual(parse("\\[ x +\n- y\n\ntext").map((b) => [b.type, b.closed]), [["math", false], ["paragraph", undefined]], "while it comes");

// One dollar on either side is mathematics where it cannot be money, a shell's variable or prose.
for (const text of ["$x$", "$x_1$", "($n$)", "$f(x) = x^2$", "$\\alpha$", "$10$", "$2x + 3$", "$ABC$", "$a, b$", "$n$-th", "$\\text{some words here}$", "$|x|$", "$x'$",
  "$\\sin x$", "$sin(x)$", "$a<b$", "$O(n \\log n)$", "$O(n log n)$", "$p = 0.05$", "$\\$5$"])
  assert.equal(inText(parseSpans(text)).length, 1, text);
for (const text of ["$5 and $10", "$5-$10", "from $5 to 6$ each", "US$5 and A$6", "$PATH and $HOME", "echo $A_B $C_D", "$5", "a $ b $ c", "$HOME/bin:$PATH", "\\$x\\$",
  "it is $5, or 5$ a day", "$5 = four euros and 3$", "`$x$`", "https://a.example/$a$", "$x$y", "$ x$", "$x $", "$$", "$", "$$$"])
  assert.deepEqual(inText(parseSpans(text)), [], text);

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
  "\\(".repeat(n / 2), `${"\\(".repeat(n / 2)}\\)`, "\\[\n".repeat(n / 3), "$$".repeat(n / 2), "$a".repeat(n / 2), `$${"a".repeat(n)}$`, `$${"ab ".repeat(n / 3)}$`, "$\n".repeat(n / 2),
  "\\(\\[$$".repeat(n / 6), "$$a$$".repeat(n / 5), "\\(a\n".repeat(n / 4), `\\(a\n${"b\n".repeat(n / 2)}\\)`, "\\begin{align}\n".repeat(n / 14), "&".repeat(n), "&amp;".repeat(n / 5), "&#".repeat(n / 2),
  "[^a]: x\n".repeat(n / 8), "[^a]".repeat(n / 4), "[^".repeat(n / 2), Array.from({ length: n / 12 }, (_, i) => `[^${i}]: x[^${i}]`).join("\n"), "\\".repeat(n) + "(",
  "|$a|".repeat(n / 4) + "\n" + "|-".repeat(900), "*\\*".repeat(n / 3), "*`*`".repeat(n / 4), "\ue000".repeat(n), "*\ue000".repeat(n / 2),
  "|a\n|-\n".repeat(n / 6), "1. ".repeat(n / 3), "\t".repeat(n) + "x", "|" + " ".repeat(n) + "\n-" + " ".repeat(n) + "x"];
for (const text of hostile) {
  const began = performance.now();
  const walk = (blocks) => blocks.forEach((b) => (b.text !== undefined && parseSpans(b.text), b.blocks && walk(b.blocks), b.items?.forEach((i) => walk(i.blocks))));
  walk(parse(text));
  const took = performance.now() - began;
  if (process.env.TIMES) console.log(took.toFixed(0), JSON.stringify(text.slice(0, 20)));
  assert.ok(took < 5000, `${took.toFixed(0)} ms for ${JSON.stringify(text.slice(0, 20))}`);
}

// Code: nothing is lost or added, and the time is linear in every language.
const coloured = (text, language) => codeParts(text, language).filter((part) => typeof part !== "string").map(([name, part]) => `${name} ${part}`);
assert.deepEqual(coloured('def f(x):  # no\n    return """a # b""" + \'c\' + 0x1F', "python"), ["word def", "comment # no", "word return", 'string """a # b"""', "string 'c'", "number 0x1F"]);
assert.deepEqual(coloured("let a = `x\n${y}`; // c", "ts"), ["word let", "string `x\n${y}`", "comment // c"]);
assert.deepEqual(coloured("#include <a>\nint x = 1'000; /* c */ char c = '\\n';", "c++"), ["key #include", "word int", "number 1'000", "comment /* c */", "word char", "string '\\n'"]);
assert.deepEqual(coloured("fn f<'a>(x: &'a str) -> char { 'b' }", "rust"), ["word fn", "key 'a", "key 'a", "word str", "word char", "string 'b'"]);
assert.deepEqual(coloured("func f() { return `a\nb` }", "main.go"), ["word func", "word return", "string `a\nb`"]);
assert.deepEqual(coloured("@Override public int f() { return 1; }", "Java"), ["key @Override", "word public", "word int", "word return", "number 1"]);
assert.deepEqual(coloured('for f in *; do echo "$f" --all a#b; done # c', "bash"), ["word for", "word in", "word do", "word echo", 'string "$f"', "key --all", "word done", "comment # c"]);
assert.deepEqual(coloured("SELECT a FROM t WHERE b = 'it''s' -- c", "sql"), ["word SELECT", "word FROM", "word WHERE", "string 'it'", "string 's'", "comment -- c"]);
assert.deepEqual(coloured('<!-- c --><a href="x">don\'t &amp;</a>', "html"), ["comment <!-- c -->", "word <a", "key href", 'string "x"', "word >", "number &amp;", "word </a", "word >"]);
assert.deepEqual(codeParts("if x", "no-such"), ["if x"]);
assert.deepEqual(codeParts("if", "__proto__"), ["if"]);
const units = ["'", '"', "`", "/*", "//", "<!--", "<a ", "\\", '"\\', "1", "1_", "0x", "#", "$", "${", "'''x", '"""', "a", "_", "@", "é1", "-", " -a", "*", "/*/", "'a", "\n#", "a ", "[", "#[", "a:", "a  ", "\n- "];
for (const language of ["python", "js", "ts", "c", "cpp", "cs", "java", "kt", "rust", "go", "sh", "sql", "css", "yaml", "html"])
  for (const unit of units)
    for (const text of [unit.repeat(Math.floor(20_000 / unit.length)), unit + "x".repeat(99_000), `1aaaaaaaa${unit}`.padEnd(99_000, "2")]) {
      const began = performance.now();
      const parts = codeParts(text, language);
      assert.ok(performance.now() - began < 1000, `${language} ${unit}`);
      assert.equal(parts.map((part) => (typeof part === "string" ? part : part[1])).join(""), text);
    }

// Formulas as MathML: what is known, what is not, and what must not become more than text.
const shape = (node) => (typeof node === "string" ? node : `${node[0]}(${node[2].map(shape).join(" ")})`);
const tree = (tex) => (texTree(tex, false) === null ? null : shape(texTree(tex, false)[2][0]));
assert.equal(tree("\\frac{-b \\pm \\sqrt{b^2}}{2a}"), "mfrac(mrow(mo(−) mi(b) mo(±) msqrt(msup(mi(b) mn(2)))) mrow(mn(2) mi(a)))");
assert.equal(tree("\\sum_{i=1}^n i"), "mrow(munderover(mo(∑) mrow(mi(i) mo(=) mn(1)) mi(n)) mi(i))");
assert.equal(tree("\\int_0^1 x' \\,dx"), "mrow(msubsup(mo(∫) mn(0) mn(1)) msup(mi(x) mo(′)) mspace() mi(d) mi(x))");
assert.equal(tree("\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}"), "mrow(mo(() mtable(mtr(mtd(mn(1)) mtd(mn(2))) mtr(mtd(mn(3)) mtd(mn(4)))) mo()))");
assert.equal(tree("a &= b \\\\ &= c"), "mtable(mtr(mtd(mi(a)) mtd(mo(=) mi(b))) mtr(mtd() mtd(mo(=) mi(c))))");
assert.equal(tree("\\frac12 x^10"), "mrow(mfrac(mn(1) mn(2)) msup(mi(x) mn(1)) mn(0))");
assert.equal(tree("\\mathbb{R}^\\mathbf{x}"), "msup(mi(ℝ) mi(𝐱))");
assert.equal(tree("\\text{a < b \\& c}"), "mtext(a\u00a0<\u00a0b\u00a0&\u00a0c)");
const shaping = new Set("mfrac msqrt mroot msub msup msubsup munder mover munderover mtable mtr mtd".split(" "));
const outline = (node) => { // as tools/golden/tex_mathml.mjs writes what Temml makes of the same formulas
  if (typeof node === "string") return node.replace(/[\s\u2061-\u2064\u200b]/g, "");
  const inner = node[2].map(outline);
  return shaping.has(node[0]) ? `${node[0]}(${inner.join(["mtd", "msqrt"].includes(node[0]) ? "" : " ")})` : inner.join("");
};
for (const [tex, wanted] of Object.entries(JSON.parse(readFileSync(new URL("formulas.json", import.meta.url), "utf8"))))
  assert.equal(texTree(tex, true) === null ? null : outline(texTree(tex, true)), wanted, tex);
for (const tex of ["\\unknown", "\\frac{a}", "{a", "a}", "a^b^c", "\\left( a", "\\begin{pmatrix} a", "\\begin{a} \\end{b}", "\\href{javascript:x}{y}", "\\class{a}{b}", "\\style{a}{b}",
  "\\def\\a{\\a\\a}\\a", "\\hspace{1e9em}", "#", "\\text{\\a}", "x".repeat(5001)])
  assert.equal(texTree(tex, true), null, tex);
const known = new Set("math mrow mi mn mo mtext mspace mfrac msqrt mroot msub msup msubsup munder mover munderover mtable mtr mtd mstyle mphantom".split(" "));
const checkTree = ([tag, attributes, children]) => {
  assert.ok(known.has(tag), tag);
  for (const [name, value] of Object.entries(attributes))
    assert.match(`${name} ${value}`, /^(?:display|mathvariant|stretchy|fence|form|lspace|rspace|width|minsize|maxsize|movablelimits|accent|accentunder|displaystyle|linethickness|class) [\w.-]+$/);
  for (const child of children) if (typeof child !== "string") checkTree(child);
};
for (const tex of ["<script>x</script>", "\\text{<img src=x onerror=y>}", "\\operatorname{<b>}", "\\sqrt[<a>]{b}", "\\begin{array}{lr} a & b \\end{array}", "\\tag{<x>} a", "\\hspace{2em}",
  "\\left\\langle x \\right|", "\\hat{x} \\boxed{y} \\bmod n"])
  checkTree(texTree(tex, true));
for (const unit of ["{", "}", "\\frac", "\\sqrt", "\\left(", "x^", "x_{", "\\begin{matrix}", "\\begin{matrix}&\\\\", "&", "\\\\", "'", "a", "\\text{", "\\not", "%", "\\hat", "\\displaystyle ", "\\frac{",
  "\\sqrt[", "\\overset", "[", "\\\\[", "1."]) {
  const began = performance.now();
  texTree(unit.repeat(Math.floor(5000 / unit.length)), true);
  assert.ok(performance.now() - began < 500, unit);
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
