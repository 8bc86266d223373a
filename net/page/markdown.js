// Markdown of a model's answer: parse() gives plain data, MarkdownView turns it into elements.
//
// The text is hostile until shown otherwise. HTML in it stays text, images are links that nothing loads, links
// lead to http, https and mailto alone. Every step is linear in the text but for bounded depth, so that no
// answer can stop the page.
import { copyButton, make } from "./dom.js";
import { colourJson, indentJson, isJson, looksLikeJson } from "./json.js";

const maxDepth = 10;
const maxLabel = 400; // characters of a link's text
const maxUrl = 2000;

// --- blocks ------------------------------------------------------------------------------------------------

const fence = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;
const heading = /^ {0,3}(#{1,6})(?=[ \t]|$)/;
const rule = /^ {0,3}(?:(?:\*\s*){3,}|(?:-\s*){3,}|(?:_\s*){3,})$/;
const quote = /^ {0,3}> ?/;
const marker = /^(\s*)([-*+]|\d{1,9}[.)])(\s+|$)/;
const delimiterRow = /^ {0,3}\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;
const special = { "<tool_call>": ["call", "</tool_call>"], "<think>": ["thought", "</think>"] };

/** Blocks of a text, each with the `source` that it came from. */
export function parse(text) {
  const blocks = parseLines(text.replace(/\r\n?/g, "\n").split("\n"), 0);
  let level = 2; // headings of an answer stand below the message's own, and skip none
  for (const block of blocks)
    if (block.type === "heading") block.level = level = Math.min(block.rank + 2, level + 1, 6);
  return blocks;
}

function parseLines(lines, depth) {
  const blocks = [];
  let at = 0;
  while (at < lines.length) {
    if (lines[at].trim() === "") {
      at += 1;
      continue;
    }
    const [block, end] = parseBlock(lines, at, depth);
    block.source ??= lines.slice(at, end).join("\n");
    blocks.push(block);
    at = end;
  }
  return blocks;
}

function parseBlock(lines, at, depth) {
  const line = lines[at];
  const opened = Object.keys(special).find((tag) => line.trimStart().startsWith(tag));
  if (opened !== undefined) return parseSpecial(lines, at, opened);
  if (fence.test(line)) return parseFence(lines, at);
  const head = heading.exec(line);
  if (head !== null) {
    const text = line.slice(head[0].length).trim();
    return [{ type: "heading", rank: head[1].length, level: 6, text: text.replace(/(?<=^| )#{1,20}$/, "").trim() }, at + 1];
  }
  if (rule.test(line)) return [{ type: "rule" }, at + 1];
  if (depth < maxDepth && quote.test(line)) return parseQuote(lines, at, depth);
  if (depth < maxDepth && marker.test(line)) return parseList(lines, at, depth);
  if (startsTable(lines, at)) return parseTable(lines, at);
  return parseParagraph(lines, at, depth);
}

function parseSpecial(lines, at, tag) {
  const [type, close] = special[tag];
  const rest = [lines[at].trimStart().slice(tag.length)];
  let end = at;
  while (!rest[rest.length - 1].includes(close) && end + 1 < lines.length) rest.push(lines[++end]);
  const whole = rest.join("\n");
  const closed = whole.indexOf(close);
  const text = (closed < 0 ? whole : whole.slice(0, closed)).trim();
  const after = closed < 0 ? "" : whole.slice(closed + close.length).trim();
  const block = { type, text, closed: closed >= 0, source: whole };
  if (after === "") return [block, end + 1];
  lines[end] = after; // what stands behind the closing tag is a block of its own
  return [block, end];
}

function parseFence(lines, at) {
  const [, ticks, info] = fence.exec(lines[at]);
  const indent = /^ */.exec(lines[at])[0].length;
  const body = [];
  let end = at + 1;
  let closed = false;
  for (; end < lines.length && !closed; ++end) {
    const found = /^ {0,3}(`{3,}|~{3,})\s*$/.exec(lines[end]);
    closed = found !== null && found[1][0] === ticks[0] && found[1].length >= ticks.length;
    if (!closed) body.push(lines[end].startsWith(" ".repeat(indent)) ? lines[end].slice(indent) : lines[end]);
  }
  return [{ type: "code", language: info.trim().split(/\s+/)[0].slice(0, 30), text: body.join("\n"), closed }, end];
}

function parseQuote(lines, at, depth) {
  const inner = [];
  let end = at;
  while (end < lines.length && lines[end].trim() !== "" && (quote.test(lines[end]) || !startsBlock(lines[end])))
    inner.push(lines[end++].replace(quote, ""));
  return [{ type: "quote", blocks: parseLines(inner, depth + 1) }, end];
}

function startsBlock(line) {
  return fence.test(line) || heading.test(line) || rule.test(line) || quote.test(line) || marker.test(line) ||
    Object.keys(special).some((tag) => line.trimStart().startsWith(tag));
}

function indentOf(line) {
  return /^\s*/.exec(line)[0].length;
}

function parseList(lines, at, depth) {
  const [, lead, mark] = marker.exec(lines[at]);
  const ordered = /\d/.test(mark);
  const kind = ordered ? mark.slice(-1) : mark;
  const items = [];
  let end = at;
  let loose = false;
  while (end < lines.length) {
    const found = marker.exec(lines[end]);
    if (found === null || found[1].length > lead.length + 1 || rule.test(lines[end])) break;
    if ((/\d/.test(found[2]) ? found[2].slice(-1) : found[2]) !== kind) break;
    const width = found[1].length + found[2].length + (found[3].length > 4 ? 1 : Math.max(found[3].length, 1));
    const inner = [lines[end++].slice(width)];
    let blank = false;
    while (end < lines.length) {
      const line = lines[end];
      if (line.trim() === "") {
        blank = true;
      } else {
        const indent = indentOf(line);
        const nested = indent >= Math.min(width, found[1].length + 2);
        if (!nested && (blank || startsBlock(line))) break;
        if (blank) loose = loose || indent >= width;
        blank = false;
      }
      inner.push(line.slice(Math.min(width, indentOf(line))));
      end += 1;
    }
    while (inner.length > 1 && inner[inner.length - 1].trim() === "") inner.pop();
    items.push(parseItem(inner, depth));
  }
  return [{ type: "list", ordered, start: ordered ? Number.parseInt(mark, 10) : 1, loose, items }, end];
}

function parseItem(lines, depth) {
  const task = /^\[([ xX])\]\s+/.exec(lines[0]);
  if (task !== null) lines[0] = lines[0].slice(task[0].length);
  return { task: task === null ? null : task[1] !== " ", blocks: parseLines(lines, depth + 1) };
}

function startsTable(lines, at) {
  return at + 1 < lines.length && lines[at].includes("|") && lines[at + 1].includes("-") &&
    lines[at + 1].length < 2000 && delimiterRow.test(lines[at + 1]) && splitRow(lines[at]).length === splitRow(lines[at + 1]).length;
}

function splitRow(line) {
  const cells = [];
  let cell = "";
  const row = line.trim();
  for (let i = row.startsWith("|") ? 1 : 0; i < row.length; ++i) {
    if (row[i] === "\\" && row[i + 1] === "|") {
      cell += "|";
      i += 1;
    } else if (row[i] === "|") {
      cells.push(cell.trim());
      cell = "";
    } else {
      cell += row[i];
    }
  }
  if (!row.endsWith("|") || cell.trim() !== "") cells.push(cell.trim());
  return cells;
}

function parseTable(lines, at) {
  const header = splitRow(lines[at]);
  const align = splitRow(lines[at + 1]).map((cell) =>
    cell.endsWith(":") ? (cell.startsWith(":") ? "center" : "right") : "left");
  const rows = [];
  let end = at + 2;
  for (; end < lines.length && lines[end].trim() !== "" && !startsBlock(lines[end]); ++end) {
    const cells = splitRow(lines[end]);
    rows.push(header.map((_, column) => cells[column] ?? ""));
  }
  return [{ type: "table", header, align, rows }, end];
}

function parseParagraph(lines, at, depth) {
  let end = at + 1;
  while (end < lines.length && lines[end].trim() !== "" && !startsTable(lines, end)) {
    const line = lines[end];
    // A number that is not 1 stands in a sentence more often than it begins a list.
    const found = depth < maxDepth ? marker.exec(line) : null;
    const interrupts = found !== null ? found[3] !== "" && (!/\d/.test(found[2]) || /^1[.)]$/.test(found[2]))
      : startsBlock(line) && !(depth >= maxDepth && (quote.test(line) || marker.test(line)));
    if (interrupts) break;
    end += 1;
  }
  return [{ type: "paragraph", text: lines.slice(at, end).map((line) => line.trimStart()).join("\n") }, end];
}

// --- spans of text -----------------------------------------------------------------------------------------

const wordCharacter = /[\p{L}\p{N}_]/u;
const plainRun = /[^\\`*_~[!<h\n]+/y;
const url = /https?:\/\/[^\s<>"'`]{1,2000}/iy;
const angled = /<((?:https?:\/\/|mailto:)[^\s<>]{1,2000})>/iy;

/** Spans of one paragraph: strings and {type, ...}. */
export function parseSpans(text, depth = 0) {
  const out = [];
  const missing = new Set(); // closers that the rest of the text does not have
  let at = 0;
  const push = (piece) => {
    if (typeof piece === "string" && typeof out[out.length - 1] === "string") out[out.length - 1] += piece;
    else out.push(piece);
  };
  while (at < text.length) {
    plainRun.lastIndex = at;
    const run = plainRun.exec(text);
    if (run !== null) {
      push(run[0]);
      at += run[0].length;
      continue;
    }
    const found = depth < maxDepth ? parseSpan(text, at, depth, missing) : null;
    if (found === null) {
      push(text[at]);
      at += 1;
    } else {
      push(found[0]);
      at = found[1];
    }
  }
  return out;
}

function parseSpan(text, at, depth, missing) {
  switch (text[at]) {
    case "\\":
      if (text[at + 1] === "\n") return [{ type: "break" }, at + 2];
      return at + 1 < text.length && /[!-/:-@[-`{-~]/.test(text[at + 1]) ? [text[at + 1], at + 2] : null;
    case "\n":
      return [/ {2}$/.test(text.slice(Math.max(0, at - 2), at)) ? { type: "break" } : "\n", at + 1];
    case "`":
      return parseCode(text, at, missing);
    case "*":
    case "_":
    case "~":
      return parseEmphasis(text, at, depth, missing);
    case "!":
      return text[at + 1] === "[" ? parseLink(text, at + 1, depth, true) : null;
    case "[":
      return parseLink(text, at, depth, false);
    case "<": {
      angled.lastIndex = at;
      const found = angled.exec(text);
      return found === null ? null : [linkTo(found[1], [found[1]]), at + found[0].length];
    }
    case "h":
      return parseUrl(text, at);
  }
  return null;
}

function parseCode(text, at, missing) {
  let end = at;
  while (text[end] === "`") end += 1;
  const ticks = text.slice(at, end);
  let close = missing.has(ticks) ? -1 : text.indexOf(ticks, end);
  while (close >= 0 && (text[close + ticks.length] === "`" || text[close - 1] === "`")) {
    let next = close;
    while (text[next] === "`") next += 1;
    close = text.indexOf(ticks, next);
  }
  if (close < 0) {
    missing.add(ticks);
    return [ticks, end];
  }
  const inner = text.slice(end, close).replace(/\n/g, " ");
  const padded = inner.startsWith(" ") && inner.endsWith(" ") && inner.trim() !== "" ? inner.slice(1, -1) : inner;
  return [{ type: "code", text: padded }, close + ticks.length];
}

function parseEmphasis(text, at, depth, missing) {
  const mark = text[at];
  let run = at;
  while (text[run] === mark) run += 1;
  const size = run - at;
  const wanted = mark === "~" ? [2] : size >= 3 ? [3, 2, 1] : [size];
  const opens = size <= 3 && run < text.length && !/\s/.test(text[run]) &&
    !(mark === "_" && at > 0 && wordCharacter.test(text[at - 1]));
  if (!opens || (mark === "~" && size !== 2)) return [text.slice(at, run), run];
  for (const length of wanted) {
    const close = findCloser(text, at + length, mark, length, missing);
    if (close < 0) continue;
    const inner = parseSpans(text.slice(at + length, close), depth + 1);
    const type = mark === "~" ? "strike" : length === 1 ? "emphasis" : "strong";
    const node = length === 3 ? { type: "emphasis", spans: [{ type: "strong", spans: inner }] } : { type, spans: inner };
    return [node, close + length];
  }
  return [text.slice(at, run), run];
}

/** Where a run that closes begins; runs of another length are stepped over. */
function findCloser(text, from, mark, length, missing) {
  const name = mark.repeat(length);
  if (missing.has(name)) return -1;
  let at = text.indexOf(name, from);
  while (at >= 0) {
    let end = at;
    while (text[end] === mark) end += 1;
    const closes = at > from && !/\s/.test(text[at - 1]) && text[at - 1] !== "\\" &&
      !(mark === "_" && end < text.length && wordCharacter.test(text[end]));
    if (closes && (end - at === length || (end - at === 3 && length < 3))) return end - length;
    at = text.indexOf(name, end);
  }
  missing.add(name);
  return -1;
}

function parseLink(text, at, depth, isImage) {
  let level = 0;
  let close = at;
  const furthest = Math.min(text.length, at + maxLabel);
  for (; close < furthest; ++close) {
    if (text[close] === "\\") close += 1;
    else if (text[close] === "[") level += 1;
    else if (text[close] === "]" && --level === 0) break;
  }
  if (close >= furthest || text[close + 1] !== "(") return null;
  let end = close + 2;
  let parens = 1;
  const last = Math.min(text.length, end + maxUrl);
  for (; end < last; ++end) {
    if (text[end] === "(") parens += 1;
    else if (text[end] === ")" && --parens === 0) break;
    else if (text[end] === "\n") return null;
  }
  if (end >= last) return null;
  const target = text.slice(close + 2, end).trim().replace(/\s+(["'(]).*$/, "").replace(/^<(.*)>$/, "$1");
  const label = text.slice(at + 1, close);
  const spans = isImage ? ["image: " + (label || target)] : parseSpans(label, depth + 4);
  return [linkTo(target, spans), end + 1];
}

function parseUrl(text, at) {
  if (at > 0 && wordCharacter.test(text[at - 1])) return null;
  url.lastIndex = at;
  const found = url.exec(text);
  if (found === null) return null;
  let address = found[0].replace(/[.,:;!?*_~]+$/, "");
  while (address.endsWith(")") && address.split(")").length > address.split("(").length) address = address.slice(0, -1);
  return [linkTo(address, [address]), at + address.length];
}

/** A link, or its text with the target written out where the target is none that may be followed. */
function linkTo(target, spans) {
  const href = safeHref(target);
  if (href !== null) return { type: "link", href, spans };
  return { type: "span", spans: target === "" ? spans : [...spans, ` (${target})`] };
}

/** An absolute http, https or mailto address; null for anything else. */
export function safeHref(target) {
  try {
    const parsed = new URL(target);
    return ["http:", "https:", "mailto:"].includes(parsed.protocol) ? parsed.href : null;
  } catch {
    return null;
  }
}

// --- elements ----------------------------------------------------------------------------------------------

function renderSpans(spans) {
  const out = document.createDocumentFragment();
  for (const span of spans) out.append(typeof span === "string" ? span : renderSpan(span));
  return out;
}

function renderSpan(span) {
  switch (span.type) {
    case "break":
      return make("br");
    case "code":
      return make("code", {}, span.text);
    case "link":
      return make("a", { href: span.href, target: "_blank", rel: "noopener noreferrer nofollow", title: span.href },
        renderSpans(span.spans));
    default: {
      const tags = { emphasis: "em", strong: "strong", strike: "s", span: "span" };
      return make(tags[span.type], {}, renderSpans(span.spans));
    }
  }
}

function renderBlocks(blocks, loose = true) {
  const out = document.createDocumentFragment();
  for (const block of blocks)
    out.append(!loose && block.type === "paragraph" ? renderSpans(parseSpans(block.text)) : renderBlock(block));
  return out;
}

function renderBlock(block) {
  switch (block.type) {
    case "heading":
      return make(`h${block.level}`, { class: `rank-${block.rank}`, dir: "auto" }, renderSpans(parseSpans(block.text)));
    case "rule":
      return make("hr");
    case "code":
      return codeBlock(block.text, block.language);
    case "quote":
      return make("blockquote", {}, renderBlocks(block.blocks));
    case "list":
      return renderList(block);
    case "table":
      return renderTable(block);
    case "call":
      return callBlock(block.text, block.closed);
    case "thought":
      return make("details", { class: "thought", open: !block.closed },
        make("summary", {}, block.closed ? "Thoughts" : "Thinking"), renderBlocks(parse(block.text)));
    default:
      return make("p", { dir: "auto" }, renderSpans(parseSpans(block.text)));
  }
}

function renderList(block) {
  const list = make(block.ordered ? "ol" : "ul", block.ordered && block.start !== 1 ? { start: block.start } : {});
  for (const item of block.items) {
    const entry = make("li", { dir: "auto" });
    if (item.task !== null) {
      entry.className = "task";
      entry.append(make("span", { "aria-hidden": "true" }, item.task ? "☑ " : "☐ "),
        make("span", { class: "unseen" }, item.task ? "done: " : "open: "));
    }
    entry.append(renderBlocks(item.blocks, block.loose));
    list.append(entry);
  }
  return list;
}

function renderTable(block) {
  const cell = (tag, text, column, attributes = {}) =>
    make(tag, { class: `align-${block.align[column]}`, dir: "auto", ...attributes }, renderSpans(parseSpans(text)));
  const head = make("tr", {}, ...block.header.map((text, i) => cell("th", text, i, { scope: "col" })));
  const rows = block.rows.map((row) => make("tr", {}, ...row.map((text, i) => cell("td", text, i))));
  return make("div", { class: "table", tabindex: "0", role: "group", "aria-label": "Table" },
    make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)));
}

/** Code with its language and a button that copies it. */
export function codeBlock(text, language) {
  const json = /^json/i.test(language) || (language === "" && isJson(text));
  return make("div", { class: "code" },
    make("div", { class: "code-head" }, make("span", {}, language || (json ? "json" : "code")),
      copyButton(() => text, "Copy", { "aria-label": "Copy the code" })),
    make("pre", { tabindex: "0", "aria-label": `${language || "code"} block`, role: "group" },
      make("code", {}, json ? colourJson(text) : text)));
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

  constructor(element) {
    this.#element = element;
  }

  /** `whole` is false while more text may come. */
  update(text, whole) {
    const blocks = this.#blocksOf(text, whole);
    const keys = blocks.map((block) => `${block.type} ${block.level ?? ""} ${block.closed ?? ""} ${block.source}`);
    let same = 0;
    while (same < keys.length && same < this.#shown.length && keys[same] === this.#shown[same]) same += 1;
    while (this.#element.childNodes.length > same) this.#element.lastChild.remove();
    for (const block of blocks.slice(same)) this.#element.append(renderBlock(block));
    this.#shown = keys;
  }

  #blocksOf(text, whole) {
    const json = whole ? isJson(text) : looksLikeJson(text);
    if (!json) return parse(text);
    return [{ type: "code", language: "json", text: whole ? indentJson(text) : text, closed: whole, source: text }];
  }
}
