// Markdown of a model's answer, as elements: blocks.js and spans.js give plain data, MarkdownView shows it.
//
// The text is hostile until shown otherwise. HTML in it stays text, images are links that nothing loads, links
// lead to http, https and mailto alone. Every step is linear in the text but for bounded depth, so that no
// answer can stop the page.
import { parse } from "./blocks.js";
import { copyButton, make } from "./dom.js";
import { colourJson, indentJson, isJson, looksLikeJson } from "./json.js";
import { parseSpans } from "./spans.js";

/** What only some answers need, formulas and the colours of code, is loaded when the first of these is shown. */
let extras = null;
function withExtras(use) {
  if (extras !== null) return use(extras);
  import("./extras.js").then((loaded) => {
    extras = loaded;
    use(loaded);
  }, () => {}); // without it, TeX and code stay as they are
}

/** `source` is shown of a formula that is not known. */
function formulaElement(tex, display, source) {
  const element = make("span", display ? { class: "formula", dir: "ltr", tabindex: "0", role: "group", "aria-label": "Formula" } : { class: "math", dir: "ltr" },
    make("code", { class: "tex" }, source));
  withExtras(({ formulaNode }) => {
    const node = formulaNode(tex, display);
    if (node !== null) element.replaceChildren(node);
  });
  return element;
}

/** What the parts of one text share: the numbers of its footnotes by name, and the element that holds them. */
function scopeOf(blocks, root) {
  const notes = blocks.find((block) => block.type === "notes")?.items ?? [];
  return { numbers: new Map(notes.map((note, i) => [note.name, i + 1])), root };
}

function renderSpans(spans, scope) {
  const out = document.createDocumentFragment();
  let taken = 0; // characters of the next string that stand with the formula before it
  spans.forEach((span, at) => {
    const skipped = taken;
    taken = 0;
    if (typeof span === "string") return out.append(span.slice(skipped));
    const element = renderSpan(span, scope);
    if (span.type !== "math" || span.display) return out.append(element);
    const [mark] = /^[.,;:!?)\]]*/.exec(typeof spans[at + 1] === "string" ? spans[at + 1] : "");
    taken = mark.length; // no line begins with them
    out.append(mark === "" ? element : make("span", { class: "unbroken" }, element, mark));
  });
  return out;
}

function renderText(text, scope) {
  return renderSpans(parseSpans(text), scope);
}

function renderSpan(span, scope) {
  switch (span.type) {
    case "break":
      return make("br");
    case "code":
      return make("code", {}, span.text);
    case "math":
      return formulaElement(span.tex, span.display, span.text);
    case "note":
      return renderReference(span.name, scope);
    case "link":
      return make("a", { href: span.href, target: "_blank", rel: "noopener noreferrer nofollow", title: span.href },
        renderSpans(span.spans, scope));
    default: {
      const tags = { emphasis: "em", strong: "strong", strike: "s", span: "span" };
      return make(tags[span.type], {}, renderSpans(span.spans, scope));
    }
  }
}

// --- footnotes: buttons that move the focus, since an answer may set no id and no address --------------------

function renderReference(name, { numbers, root }) {
  const number = numbers.get(name);
  if (number === undefined) return `[^${name}]`;
  const go = () => root.querySelector(`li[data-note="${number}"]`)?.focus();
  return make("sup", {}, make("button", { type: "button", class: "note-mark", "data-mark": number, "aria-label": `Footnote ${number}`, onclick: go }, String(number)));
}

function renderNotes(block, scope) {
  const items = block.items.map((item, i) => {
    const back = make("button", { type: "button", class: "note-mark", "aria-label": `Back to where footnote ${i + 1} is named`,
      onclick: () => scope.root.querySelector(`[data-mark="${i + 1}"]`)?.focus() }, "↩");
    return make("li", { "data-note": i + 1, tabindex: "-1", dir: "auto" }, renderBlocks(item.blocks, scope, false), " ", back);
  });
  return make("section", { class: "notes", "aria-label": "Footnotes" }, make("ol", {}, ...items));
}

// --- blocks --------------------------------------------------------------------------------------------------

function renderBlocks(blocks, scope, loose = true) {
  const out = document.createDocumentFragment();
  for (const block of blocks)
    out.append(!loose && block.type === "paragraph" ? renderText(block.text, scope) : renderBlock(block, scope));
  return out;
}

function renderBlock(block, scope) {
  switch (block.type) {
    case "heading":
      return make(`h${block.level}`, { class: `rank-${block.rank}`, dir: "auto" }, renderText(block.text, scope));
    case "rule":
      return make("hr");
    case "code":
      return codeBlock(block.text, block.language);
    case "math":
      return formulaElement(block.tex, true, block.tex);
    case "notes":
      return renderNotes(block, scope);
    case "quote":
      return make("blockquote", {}, renderBlocks(block.blocks, scope));
    case "list":
      return renderList(block, scope);
    case "table":
      return renderTable(block, scope);
    case "call":
      return callBlock(block.text, block.closed);
    case "thought":
      return renderThought(block.text, block.closed);
    default:
      return make("p", { dir: "auto" }, renderText(block.text, scope));
  }
}

/** What a model thought before it answered; open while it thinks. */
export function renderThought(text, closed) {
  const details = make("details", { class: "thought", open: !closed }, make("summary", {}, closed ? "Thoughts" : "Thinking"));
  const blocks = parse(text);
  details.append(renderBlocks(blocks, scopeOf(blocks, details)));
  return details;
}

function renderList(block, scope) {
  const list = make(block.ordered ? "ol" : "ul", block.ordered && block.start !== 1 ? { start: block.start } : {});
  for (const item of block.items) {
    const task = item.task === null ? [] : [make("span", { "aria-hidden": "true" }, item.task ? "☑ " : "☐ "),
      make("span", { class: "unseen" }, item.task ? "done: " : "open: ")];
    list.append(make("li", { dir: "auto", class: item.task === null ? null : "task" }, ...task, renderBlocks(item.blocks, scope, block.loose)));
  }
  return list;
}

function renderTable(block, scope) {
  const cell = (tag, text, column, attributes = {}) =>
    make(tag, { class: `align-${block.align[column]}`, dir: "auto", ...attributes }, renderText(text, scope));
  const head = make("tr", {}, ...block.header.map((text, i) => cell("th", text, i, { scope: "col" })));
  const rows = block.rows.map((row) => make("tr", {}, ...row.map((text, i) => cell("td", text, i))));
  return make("div", { class: "table", tabindex: "0", role: "group", "aria-label": "Table" },
    make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)));
}

/** Code with its language and a button that copies it. */
export function codeBlock(text, language) {
  const json = /^json/i.test(language) || (language === "" && isJson(text));
  const shown = make("code", {}, json ? colourJson(text) : text);
  if (!json) withExtras(({ colourCode }) => shown.replaceChildren(colourCode(text, language)));
  return make("div", { class: "code" },
    make("div", { class: "code-head" }, make("span", {}, language || (json ? "json" : "code")),
      copyButton(() => text, "Copy", { "aria-label": "Copy the code" })),
    make("pre", { tabindex: "0", "aria-label": `${language || "code"} block`, role: "group" },
      shown));
}

/** A call of a tool that a model wrote into its text: {"name": ..., "arguments": {...}}. */
export function callBlock(text, closed) {
  let name = "";
  let given = text;
  try {
    const call = JSON.parse(text);
    name = String(call.name ?? "");
    if (call.arguments !== undefined)
      given = typeof call.arguments === "string" ? call.arguments : JSON.stringify(call.arguments);
  } catch {
    // Not whole yet, or not JSON: shown as it is.
  }
  return toolCall(name, given, closed);
}

export function toolCall(name, given, closed) {
  return make("section", { class: "call", "aria-label": `Tool call ${name}` },
    make("div", { class: "call-head" }, make("span", { class: "call-kind" }, closed ? "Tool call" : "Calling a tool"),
      make("code", {}, name || "…"), copyButton(() => given, "Copy", { "aria-label": "Copy the arguments" })),
    make("pre", { tabindex: "0", "aria-label": "Arguments", role: "group" }, make("code", {}, colourJson(indentJson(given)))));
}

/** Shows a text that grows: blocks that did not change keep their elements. */
export class MarkdownView {
  #element;
  #shown = [];
  #names = ""; // of the footnotes
  #numbering = 0; // counts how often these changed

  constructor(element) {
    this.#element = element;
  }

  /** `whole` is false while more text may come. */
  update(text, whole) {
    const blocks = this.#blocksOf(text, whole);
    const scope = scopeOf(blocks, this.#element);
    const names = [...scope.numbers.keys()].join(" ");
    if (names !== this.#names) [this.#names, this.#numbering] = [names, this.#numbering + 1];
    const keys = blocks.map((block) =>
      `${block.type} ${block.level ?? ""} ${block.closed ?? ""} ${block.source.includes("[^") ? this.#numbering : ""} ${block.source}`);
    let same = 0;
    while (same < keys.length && same < this.#shown.length && keys[same] === this.#shown[same]) same += 1;
    while (this.#element.childNodes.length > same) this.#element.lastChild.remove();
    for (const block of blocks.slice(same)) this.#element.append(renderBlock(block, scope));
    this.#shown = keys;
  }

  #blocksOf(text, whole) {
    const json = whole ? isJson(text) : looksLikeJson(text);
    if (!json) return parse(text);
    return [{ type: "code", language: "json", text: whole ? indentJson(text) : text, closed: whole, source: text }];
  }
}
