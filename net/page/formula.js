// Where TeX stands in a text: \( \), \[ \], $$ $$, and $ $ where what is between is clearly mathematics.

const most = 20_000; // characters of a formula
const closers = { "\\(": "\\)", "\\[": "\\]", "$$": "$$" };
const wordCharacter = /[\p{L}\p{N}_]/u;
const functions = "sin|cos|tan|cot|sec|csc|sinh|cosh|tanh|arcsin|arccos|arctan|log|ln|exp|lim|max|min|sup|inf|det|dim|ker|gcd|mod|arg|deg|Pr|argmax|argmin|lcm";
const plainTerm = new RegExp(`^(?:${functions}|[\\p{L}\\p{M}]|\\d[\\d.,]*\\p{L}?)$`, "u");

/** The place of `\` and this character that no other backslash escapes; -1 where there is none. */
function escapedAt(text, character, from) {
  for (let at = text.indexOf("\\", from); at >= 0 && at + 1 < text.length; at = text.indexOf("\\", at + 2))
    if (text[at + 1] === character) return at;
  return -1;
}

/** Where the closer of an opener begins, at this place or behind it; infinity where there is none. */
function closerOf(opener, text, from) {
  const at = opener === "$$" ? text.indexOf("$$", from) : escapedAt(text, closers[opener][1], from);
  return at < 0 ? Infinity : at;
}

/** Prices and variables of a shell stand between dollars too: only what cannot be prose is mathematics. */
function isClear(tex) {
  if (tex.includes("\\")) return true;
  if (/\p{L}\p{L}[ \n,;:]+\p{L}\p{L}/u.test(tex)) return false; // two words
  if (/[\^_={}<>]/.test(tex)) return true;
  const terms = tex.split(/[\s+\-*/(),.:;|!'′[\]·×÷±…≤≥≠≈∈→]+/u).filter((term) => term !== "");
  return terms.every((term) => plainTerm.test(term)) || (terms.length === 1 && /^\p{L}{2,3}$/u.test(tex));
}

function dollarFormula(text, at) {
  if (at > 0 && wordCharacter.test(text[at - 1])) return null;
  if (/[\s$]/.test(text[at + 1] ?? " ")) return null;
  let end = at + 1;
  while (end < text.length && end - at < most && text[end] !== "$") end += text[end] === "\\" ? 2 : 1;
  if (text[end] !== "$" || /\s/.test(text[end - 1]) || wordCharacter.test(text[end + 1] ?? " ")) return null;
  const tex = text.slice(at + 1, end);
  return isClear(tex) ? { tex, display: false, end: end + 1 } : null;
}

/**
 * The formula that begins at a place, {tex, display, end}; null where none does. `nearest` keeps, for each opener,
 * where its next closer is, so that a text is searched through once for each.
 */
export function formulaAt(text, at, nearest) {
  const opener = text.slice(at, at + 2);
  if (!Object.hasOwn(closers, opener)) return text[at] === "$" ? dollarFormula(text, at) : null;
  if (!(nearest.get(opener) >= at + 2)) nearest.set(opener, closerOf(opener, text, at + 2));
  const close = nearest.get(opener);
  if (close - at > most) return null;
  if (opener === "\\[" && text[close + 2] === "(") return null; // a link that was escaped
  const tex = text.slice(at + 2, close);
  return tex.trim() === "" ? null : { tex, display: opener !== "\\(", end: close + 2 };
}

/** What opens a formula at the begin of a line: its opener, and its closer; null where nothing does. */
export function opensFormula(line) {
  const begun = /^\s*(?:(\$\$|\\\[)|\\begin\{((?:equation|align|aligned|alignat|gather|gathered|multline|eqnarray|split|cases|[pbvBV]?matrix|array)\*?)\})/.exec(line);
  if (begun === null) return null;
  return begun[1] === undefined ? { opener: "", closer: `\\end{${begun[2]}}` } : { opener: begun[1], closer: closers[begun[1]] };
}
