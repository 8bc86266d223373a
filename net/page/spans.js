// Spans of one paragraph of Markdown, as plain data: strings and {type, ...}. Linear in the text but for bounded depth.
//
// A first pass finds what Markdown must not look into (code, formulas, escapes, character references) and masks
// it, so that no emphasis and no link begins or ends inside.
import { decodeEntities, entityAt } from "./entities.js";
import { formulaAt } from "./formula.js";

const maxDepth = 10;
const maxLabel = 400; // characters of a link's text
const maxUrl = 2000;
const mask = "\ue000";

const wordCharacter = /[\p{L}\p{N}_]/u;
const plainRun = /[^*_~[!<h\n\ue000]+/y;
const interesting = /[\\`$&]|https?:\/\/[^\s<>"'`]{1,2000}/gi;
const url = /https?:\/\/[^\s<>"'`]{1,2000}/iy;
const angled = /<((?:https?:\/\/|mailto:)[^\s<>]{1,2000})>/iy;
const note = /\[\^([^\]\s[\ue000]{1,60})\]/y;

/** Spans of one paragraph: strings and {type, ...}. */
export function parseSpans(text) {
  const { masked, opaque } = maskOpaque(text);
  return new Parser(text, opaque).parse(masked, 0, 0, false);
}

// --- what Markdown does not look into ------------------------------------------------------------------------

/** The text with every opaque part replaced by as many mask characters, and the parts by where they begin: [span, end]. */
export function maskOpaque(text) {
  const opaque = new Map();
  const missing = new Set(); // runs of backticks that the rest of the text does not close
  const nearest = new Map(); // see formulaAt()
  let masked = "";
  let done = 0;
  interesting.lastIndex = 0;
  for (let found = interesting.exec(text); found !== null; found = interesting.exec(text)) {
    const at = found.index;
    if (found[0].length > 1) continue; // an address keeps its dollars and ampersands
    const part = found[0] === "`" ? codeAt(text, at, missing) : found[0] === "&" ? entityAt(text, at) : escapeOrFormula(text, at, nearest);
    if (part === null) continue;
    const end = part[1];
    if (part[0] !== null) {
      opaque.set(at, part);
      masked += text.slice(done, at) + mask.repeat(end - at);
      done = end;
    }
    interesting.lastIndex = end;
  }
  return { masked: masked + text.slice(done), opaque };
}

function escapeOrFormula(text, at, nearest) {
  const formula = formulaAt(text, at, nearest);
  if (formula !== null) {
    const { tex, display, end } = formula;
    return [{ type: "math", tex, display, text: text.slice(at, end) }, end];
  }
  if (text[at] === "$") return text[at + 1] === "$" ? [null, at + 2] : null;
  if (text[at + 1] === "\n") return [{ type: "break" }, at + 2];
  return at + 1 < text.length && /[!-/:-@[-`{-~]/.test(text[at + 1]) ? [text[at + 1], at + 2] : null;
}

function codeAt(text, at, missing) {
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
    return [null, end];
  }
  const inner = text.slice(end, close).replace(/\n/g, " ");
  const padded = inner.startsWith(" ") && inner.endsWith(" ") && inner.trim() !== "" ? inner.slice(1, -1) : inner;
  return [{ type: "code", text: padded }, close + ticks.length];
}

// --- emphasis and links --------------------------------------------------------------------------------------

class Parser {
  #text;
  #opaque;

  constructor(text, opaque) {
    this.#text = text;
    this.#opaque = opaque;
  }

  /** Spans of a part of the masked text, which begins at `base` of the whole. */
  parse(part, base, depth, inLink) {
    const out = [];
    // `missing`: closers that the rest of the part does not have; `nearest`: where the next bracket of a kind is.
    const from = { part, base, depth, inLink, missing: new Set(), nearest: new Map() };
    const push = (piece) => {
      if (typeof piece === "string" && typeof out[out.length - 1] === "string") out[out.length - 1] += piece;
      else out.push(piece);
    };
    let at = 0;
    while (at < part.length) {
      plainRun.lastIndex = at;
      const run = plainRun.exec(part);
      if (run !== null) {
        push(run[0]);
        at += run[0].length;
        continue;
      }
      const found = this.#span(from, at);
      push(found === null ? part[at] : found[0]);
      at = found === null ? at + 1 : found[1];
    }
    return out;
  }

  #span(from, at) {
    const { part, base, depth } = from;
    if (part[at] === mask) {
      const hidden = this.#opaque.get(base + at);
      return hidden === undefined ? null : [hidden[0], hidden[1] - base];
    }
    if (part[at] === "\n") return [/ {2}$/.test(part.slice(Math.max(0, at - 2), at)) ? { type: "break" } : "\n", at + 1];
    if (depth >= maxDepth) return null;
    switch (part[at]) {
      case "!":
        return part[at + 1] === "[" ? this.#link(from, at + 1, true) : null;
      case "[":
        note.lastIndex = at;
        if (note.test(part)) return [{ type: "note", name: part.slice(at + 2, note.lastIndex - 1) }, note.lastIndex];
        return this.#link(from, at, false);
      case "<":
        angled.lastIndex = at;
        return angled.test(part) && !from.inLink ? [linkTo(part.slice(at + 1, angled.lastIndex - 1)), angled.lastIndex] : null;
      case "h":
        return from.inLink ? null : this.#address(part, at);
      default:
        return this.#emphasis(from, at);
    }
  }

  #emphasis({ part, base, depth, inLink, missing }, at) {
    const mark = part[at];
    let run = at;
    while (part[run] === mark) run += 1;
    const size = run - at;
    const wanted = mark === "~" ? [2] : size >= 3 ? [3, 2, 1] : [size];
    const opens = size <= 3 && run < part.length && !/\s/.test(part[run]) &&
      !(mark === "_" && at > 0 && wordCharacter.test(part[at - 1]));
    if (!opens || (mark === "~" && size !== 2)) return [part.slice(at, run), run];
    for (const length of wanted) {
      const close = findCloser(part, at + length, mark, length, missing);
      if (close < 0) continue;
      const inner = this.parse(part.slice(at + length, close), base + at + length, depth + 1, inLink);
      const type = mark === "~" ? "strike" : length === 1 ? "emphasis" : "strong";
      const node = length === 3 ? { type: "emphasis", spans: [{ type: "strong", spans: inner }] } : { type, spans: inner };
      return [node, close + length];
    }
    return [part.slice(at, run), run];
  }

  #link(from, at, isImage) {
    const { part, base, depth, inLink } = from;
    if (!isNear(from, "]", at, maxLabel) || !isNear(from, ")", at, maxLabel + maxUrl)) return null;
    let level = 0;
    let close = at;
    const furthest = Math.min(part.length, at + maxLabel);
    for (; close < furthest; ++close) {
      if (part[close] === "[") level += 1;
      else if (part[close] === "]" && --level === 0) break;
    }
    if (close >= furthest || part[close + 1] !== "(") return null;
    let end = close + 2;
    let parens = 1;
    const last = Math.min(part.length, end + maxUrl);
    for (; end < last; ++end) {
      if (part[end] === "(") parens += 1;
      else if (part[end] === ")" && --parens === 0) break;
      else if (part[end] === "\n") return null;
    }
    if (end >= last || (inLink && !isImage)) return null;
    const whole = this.#text.slice(base + close + 2, base + end);
    const target = decodeEntities(whole.trim().replace(/\s+(["'(]).*$/, "").replace(/^<(.*)>$/, "$1").replace(/\\([!-/:-@[-`{-~])/g, "$1"));
    const label = this.#text.slice(base + at + 1, base + close);
    if (isImage && inLink) return [`image: ${label || target}`, end + 1];
    const spans = isImage ? [`image: ${label || target}`] : this.parse(part.slice(at + 1, close), base + at + 1, depth + 4, true);
    return [linkTo(target, spans), end + 1];
  }

  #address(part, at) {
    if (at > 0 && wordCharacter.test(part[at - 1])) return null;
    url.lastIndex = at;
    const found = url.exec(part);
    if (found === null) return null;
    let address = found[0].replace(/[.,:;!?*_~\ue000]+$/, "");
    let surplus = address.split(")").length - address.split("(").length; // of closing parentheses
    for (; surplus > 0 && address.endsWith(")"); --surplus) address = address.slice(0, -1);
    return [linkTo(address), at + address.length];
  }
}

/** Whether a bracket stands within so many characters; each is searched for once, since places come in order. */
function isNear({ part, nearest }, bracket, at, within) {
  if (!(nearest.get(bracket) >= at)) {
    const next = part.indexOf(bracket, at);
    nearest.set(bracket, next < 0 ? Infinity : next);
  }
  return nearest.get(bracket) - at <= within + 2;
}

/** Where a run that closes begins; runs of another length are stepped over. */
function findCloser(text, from, mark, length, missing) {
  const name = mark.repeat(length);
  if (missing.has(name)) return -1;
  let at = text.indexOf(name, from);
  while (at >= 0) {
    let end = at;
    while (text[end] === mark) end += 1;
    const closes = at > from && !/\s/.test(text[at - 1]) && !(mark === "_" && end < text.length && wordCharacter.test(text[end]));
    if (closes && (end - at === length || (end - at === 3 && length < 3))) return end - length;
    at = text.indexOf(name, end);
  }
  missing.add(name);
  return -1;
}

/** A link, or its text with the target written out where the target is none that may be followed. */
function linkTo(target, spans = [target]) {
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
