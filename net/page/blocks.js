// Blocks of Markdown, as plain data: {type, ...}, each with the `source` that it came from. Linear in the text but for
// bounded depth.
import { opensFormula } from "./formula.js";
import { maskOpaque } from "./spans.js";

const maxDepth = 10;

const fence = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;
const heading = /^ {0,3}(#{1,6})(?=[ \t]|$)/;
const rule = /^ {0,3}(?:(?:\*\s*){3,}|(?:-\s*){3,}|(?:_\s*){3,})$/;
const quote = /^ {0,3}> ?/;
const marker = /^(\s*)([-*+]|\d{1,9}[.)])(\s+|$)/;
const delimiterRow = /^ {0,3}\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;
const definition = /^ {0,3}\[\^([^\]\s[]{1,60})\]:[ \t]*/;
const special = { "<tool_call>": ["call", "</tool_call>"], "<think>": ["thought", "</think>"] };

/** Blocks of a text, each with the `source` that it came from. */
export function parse(text) {
  const blocks = parseLines(text.replace(/\r\n?/g, "\n").split("\n"), 0);
  let level = 2; // headings of an answer stand below the message's own, and skip none
  for (const block of blocks)
    if (block.type === "heading") block.level = level = Math.min(block.rank + 2, level + 1, 6);
  return gatherNotes(blocks);
}

/** Puts the footnotes behind all else, in the order in which they are referred to. */
function gatherNotes(blocks) {
  const defined = new Map();
  for (const block of blocks) if (block.type === "note" && !defined.has(block.name)) defined.set(block.name, block);
  if (defined.size === 0) return blocks;
  const rest = blocks.filter((block) => block.type !== "note");
  const order = new Set();
  for (const block of rest.filter((one) => one.type !== "code"))
    for (const [, name] of block.source.matchAll(/\[\^([^\]\s[]{1,60})\]/g)) if (defined.has(name)) order.add(name);
  for (const name of defined.keys()) order.add(name);
  const items = [...order].map((name) => defined.get(name));
  return [...rest, { type: "notes", items, source: items.map((item) => item.source).join("\n") }];
}

function parseLines(lines, depth) {
  const blocks = [];
  const unclosed = new Set(); // closers of formulas that the rest of the lines does not have
  let at = 0;
  while (at < lines.length) {
    if (lines[at].trim() === "") {
      at += 1;
      continue;
    }
    const [block, end] = parseFormula(lines, at, unclosed) ?? parseBlock(lines, at, depth);
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
  if (depth === 0 && definition.test(line)) return parseNote(lines, at);
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
  const block = { type, text, closed: closed >= 0, source: closed < 0 ? whole : whole.slice(0, closed + close.length) };
  if (after === "") return [block, end + 1];
  lines[end] = after; // what stands behind the closing tag is a block of its own
  return [block, end];
}

/** A formula that begins a line; null where none does. One that is not closed yet is taken up to the next empty line. */
function parseFormula(lines, at, unclosed) {
  const opens = opensFormula(lines[at]);
  if (opens === null) return null;
  const { opener, closer } = opens;
  const first = lines[at].trimStart().slice(opener.length);
  let end = at;
  let close = unclosed.has(closer) ? -1 : first.indexOf(closer);
  if (!unclosed.has(closer)) while (close < 0 && ++end < lines.length) close = lines[end].indexOf(closer);
  if (close < 0) {
    unclosed.add(closer);
    if (opener === "$$" && first.trim() !== "") return null;
    for (end = at + 1; end < lines.length && lines[end].trim() !== ""; ) end += 1;
    return [{ type: "math", tex: [first, ...lines.slice(at + 1, end)].join("\n").trim(), closed: false }, end];
  }
  const last = (end === at ? first : lines[end]).slice(0, close + (opener === "" ? closer.length : 0));
  const tex = (end === at ? last : [first, ...lines.slice(at + 1, end), last].join("\n")).trim();
  if (tex === "") return null;
  const after = (end === at ? first : lines[end]).slice(close + closer.length).trim();
  const block = { type: "math", tex, closed: true, source: opener + tex };
  if (/^[.,;:!?]?$/.test(after)) return [{ ...block, tex: tex + after }, end + 1];
  lines[end] = after; // what stands behind the formula is a block of its own
  return [block, end];
}

function parseNote(lines, at) {
  const [head, name] = definition.exec(lines[at]);
  const inner = [lines[at].slice(head.length)];
  let end = at + 1;
  for (; end < lines.length; ++end) {
    const blank = lines[end].trim() === "";
    if (blank ? !/^(?: {2,}|\t)/.test(lines[end + 1] ?? "") : inner.at(-1) === "" && !/^(?: {2,}|\t)/.test(lines[end])) break;
    if (!blank && !/^\s/.test(lines[end]) && startsBlock(lines[end])) break;
    inner.push(blank ? "" : lines[end].replace(/^(?: {1,4}|\t)/, ""));
  }
  return [{ type: "note", name, blocks: parseLines(inner, 1) }, end];
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
    definition.test(line) || opensFormula(line) !== null || Object.keys(special).some((tag) => line.trimStart().startsWith(tag));
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

/** The cells of a row. A bar inside a formula separates nothing. */
function splitRow(line) {
  const cells = [];
  let cell = "";
  const row = line.trim();
  const formulas = /[\\$]/.test(row) ? maskOpaque(row).opaque : new Map();
  for (let i = row.startsWith("|") ? 1 : 0; i < row.length; ++i) {
    const [span, end] = formulas.get(i) ?? [];
    if (span?.type === "math") {
      cell += span.text;
      i = end - 1;
    } else if (row[i] === "\\" && row[i + 1] === "|") {
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
  const unclosed = new Set(); // closers of formulas that the paragraph does not have
  let inside = openedFormula(lines, at, null, unclosed);
  while (end < lines.length && lines[end].trim() !== "") {
    if (inside === null && (startsTable(lines, end) || interrupts(lines[end], depth))) break;
    inside = openedFormula(lines, end, inside, unclosed);
    end += 1;
  }
  return [{ type: "paragraph", text: lines.slice(at, end).map((line) => line.trimStart()).join("\n") }, end];
}

function interrupts(line, depth) {
  // A number that is not 1 stands in a sentence more often than it begins a list.
  const found = depth < maxDepth ? marker.exec(line) : null;
  if (found !== null) return found[3] !== "" && (!/\d/.test(found[2]) || /^1[.)]$/.test(found[2]));
  return startsBlock(line) && !(depth >= maxDepth && (quote.test(line) || marker.test(line)));
}

const formulaMark = /\\[\\()[\]]|\$\$/g;
const closerOf = { "\\(": "\\)", "\\[": "\\]", "$$": "$$" };

/**
 * The closer of the formula that a line of a paragraph leaves open, null where it leaves none open; `closer` is that
 * of the line before. A formula that ends nowhere in the paragraph is none.
 */
function openedFormula(lines, at, closer, unclosed) {
  let opened = false; // by this line, so that what follows was not looked through yet
  for (const [mark] of lines[at].matchAll(formulaMark)) {
    if (closer !== null) closer = mark === closer ? null : closer;
    else if (Object.hasOwn(closerOf, mark)) [closer, opened] = [closerOf[mark], true];
  }
  if (closer === null || !opened) return closer;
  if (unclosed.has(closer)) return null;
  for (let next = at + 1; next < lines.length && lines[next].trim() !== ""; ++next) if (lines[next].includes(closer)) return closer;
  unclosed.add(closer);
  return null;
}
