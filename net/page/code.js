// Colours code of a handful of languages: comments, strings, numbers, keywords. What it does not know stays plain.
//
// A table says what each language calls by these names. Every alternative of an expression takes in all that it looks
// at, so that the time is linear in the text, whatever it is.
import { make } from "./dom.js";

const most = 100_000; // characters: a longer text is shown as it is

const lineC = String.raw`\/\/[^\n]*`;
const blockC = String.raw`\/\*(?:[^*]|\*(?!\/))*(?:\*\/)?`;
const hash = String.raw`(?<=^|[\s;(])#[^\n]*`;
const quoted = (mark, inner = "\\n") => String.raw`${mark}(?:[^${mark}\\${inner}]|\\[^])*${mark}?`;
const plainQuoted = (mark) => `${mark}[^${mark}]*${mark}?`; // no escapes, over several lines
const triple = (mark) => String.raw`${mark}{3}(?:[^${mark}\\]|\\[^]|${mark}(?!${mark}{2}))*(?:${mark}{3})?`;
const character = String.raw`'(?:\\[^\n']{1,10}|[^\\\n'])'`; // a lifetime of Rust is none

const words = (text) => new Set(text.split(" "));
const cWords = "break case const continue default do else enum extern for goto if inline register return sizeof static struct switch " +
  "typedef union volatile while void char short int long float double signed unsigned bool auto true false";
const javaWords = "abstract assert boolean break byte case catch char class continue default do double else enum extends final finally float " +
  "for if implements import instanceof int interface long native new null package private protected public record return short static " +
  "super switch synchronized this throw throws transient true false try var void volatile while yield sealed permits";
const scriptWords = "async await break case catch class const continue debugger default delete do else export extends false finally for from " +
  "function get if import in instanceof let new null of return set static super switch this throw true try typeof undefined var void " +
  "while yield";

const kinds = {
  python: { comments: [hash], strings: [triple('"'), triple("'"), quoted('"'), quoted("'")],
    words: words("and as assert async await break case class continue def del elif else except finally for from global if import in is " +
      "lambda match nonlocal not or pass raise return try while with yield None True False self") },
  javascript: { comments: [lineC, blockC], strings: [quoted('"'), quoted("'"), quoted("`", "")], words: words(scriptWords) },
  typescript: { comments: [lineC, blockC], strings: [quoted('"'), quoted("'"), quoted("`", "")],
    words: words(`${scriptWords} abstract any as boolean declare enum implements infer interface keyof namespace never number private protected ` +
      "public readonly satisfies string symbol type unknown") },
  c: { comments: [lineC, blockC], strings: [quoted('"'), character], words: words(cWords), marked: String.raw`^[ \t]*#[ \t]*\w+` },
  cpp: { comments: [lineC, blockC], strings: [quoted('"'), character], marked: String.raw`^[ \t]*#[ \t]*\w+`,
    words: words(`${cWords} alignas alignof catch class co_await co_return co_yield concept consteval constexpr constinit decltype delete ` +
      "explicit export final friend mutable namespace new noexcept nullptr operator override private protected public requires " +
      "static_assert static_cast template this throw try typename using virtual wchar_t size_t __global__ __device__ __shared__") },
  csharp: { comments: [lineC, blockC], strings: [quoted('"'), character],
    words: words(`${javaWords} as async await base bool decimal delegate event foreach get in internal is lock namespace object out override ` +
      "params readonly ref sealed set string struct using value virtual where") },
  java: { comments: [lineC, blockC], strings: [triple('"'), quoted('"'), character], words: words(javaWords), marked: String.raw`@\w+` },
  kotlin: { comments: [lineC, blockC], strings: [triple('"'), quoted('"'), character], marked: String.raw`@\w+`,
    words: words("as break by catch class companion constructor continue data do else enum false finally for fun if import in init interface " +
      "internal is it lateinit null object open operator override package private protected public return sealed super suspend this throw " +
      "true try typealias val var when where while") },
  rust: { comments: [lineC, blockC], strings: [quoted('"', ""), character], marked: String.raw`#!?\[[^\]\n]*\]?|\b\w{1,60}!(?=[\s({\[])|'\w+`,
    words: words("as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref " +
      "return self Self static struct super trait true type unsafe use where while bool char f32 f64 i8 i16 i32 i64 i128 isize str u8 u16 " +
      "u32 u64 u128 usize Some None Ok Err") },
  go: { comments: [lineC, blockC], strings: [quoted('"'), plainQuoted("`"), character],
    words: words("any bool break byte case chan const continue default defer else error fallthrough false float32 float64 for func go goto if " +
      "import int int32 int64 interface iota make map nil package range return rune select string struct switch true type uint uint32 " +
      "uint64 uint8 var") },
  shell: { comments: [hash], strings: [plainQuoted("'"), quoted('"', "")], marked: String.raw`\$(?:\w+|\{[^}\n]*\}?|[@#?*!$-])|(?<=\s)--?[A-Za-z][\w-]*`,
    words: words("if then else elif fi for while until do done case esac in function return local export set unset exit echo cd source sudo " +
      "alias read shift trap exec eval test") },
  sql: { comments: [String.raw`--[^\n]*`, blockC], strings: [plainQuoted("'"), plainQuoted('"')], folded: true,
    words: words("add all alter and any as asc avg begin between by case cast check column commit constraint count create cross database default " +
      "delete desc distinct drop else end exists foreign from full function group having if in index inner insert integer into is join key " +
      "left like limit max min not null numeric offset on or order outer over partition primary references returning right rollback row " +
      "select set sum table text then transaction union unique update using values varchar view when where window with") },
  css: { comments: [blockC], strings: [quoted('"'), quoted("'")], words: words("important"), marked: String.raw`[\w-]{1,40}(?=\s{0,9}:)|@[\w-]+|#[\w-]+` },
  yaml: { comments: [hash], strings: [quoted('"'), quoted("'")], words: words("true false null yes no on off"),
    marked: String.raw`^[ \t]*(?:-[ \t]+)?[\w.-]+(?=[ \t]*[:=])|^\[[^\]\n]*\]?` },
};

const aliases = {
  py: "python", python3: "python", py3: "python", pycon: "python", js: "javascript", jsx: "javascript", mjs: "javascript", node: "javascript", ts: "typescript",
  tsx: "typescript", h: "c", "c++": "cpp", cc: "cpp", cxx: "cpp", hpp: "cpp", cuda: "cpp", cu: "cpp", cs: "csharp", "c#": "csharp", kt: "kotlin",
  rs: "rust", golang: "go", sh: "shell", bash: "shell", zsh: "shell", console: "shell", dockerfile: "shell", postgresql: "sql", mysql: "sql",
  sqlite: "sql", scss: "css", yml: "yaml", toml: "yaml", ini: "yaml", xml: "html", svg: "html", xhtml: "html", vue: "html",
};

const number = String.raw`\b(?:0[xXbBoO][\w']+|\d[\d_']*(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)?\w{0,8})`;
const compiled = new Map();

/** The expression of a language, with a group for each of comment, string, mark, number and word. */
function expressionOf(kind) {
  if (!compiled.has(kind)) {
    const { comments, strings, marked } = kinds[kind];
    const groups = [comments.join("|"), strings.join("|"), marked ?? "(?!)", number, String.raw`[\p{L}_][\p{L}\p{N}_]*`].map((one) => `(${one})`);
    compiled.set(kind, new RegExp(groups.join("|"), "gmu"));
  }
  return compiled.get(kind);
}

/** The parts of a text: strings, and [class, string]. `language` is what stands behind a fence: a language or the name of a file. */
export function codeParts(text, language) {
  const name = language.toLowerCase().replace(/[},:].*$/, "").split(".").at(-1); // of main.py too, and {.python}
  const kind = aliases[name] ?? name;
  if (text.length > most) return [text];
  if (kind === "html") return markupParts(text);
  return Object.hasOwn(kinds, kind) ? tokenParts(text, kind) : [text];
}

function tokenParts(text, kind) {
  const { words: known, folded } = kinds[kind];
  const out = [];
  let done = 0;
  for (const found of text.matchAll(expressionOf(kind))) {
    const [whole, comment, string, mark, figure, word] = found;
    if (word !== undefined && !known.has(folded ? word.toLowerCase() : word)) continue;
    const name = comment !== undefined ? "comment" : string !== undefined ? "string" : mark !== undefined ? "key" : figure !== undefined ? "number" : "word";
    if (found.index > done) out.push(text.slice(done, found.index));
    out.push([name, whole]);
    done = found.index + whole.length;
  }
  if (done < text.length) out.push(text.slice(done));
  return out;
}

const outside = /(<!--(?:[^-]|-(?!->))*(?:-->)?)|(<[/!?]?[A-Za-z][\w:.-]*)|&[#\w]{1,30};/g;
const inside = /("[^"]*"?|'[^']*'?)|([^\s"'<>/=]+)|(>)/g;

function markupParts(text) {
  const out = [];
  let done = 0;
  let tag = false;
  for (;;) {
    const expression = tag ? inside : outside;
    expression.lastIndex = done;
    const found = expression.exec(text);
    if (found === null) break;
    if (found.index > done) out.push(text.slice(done, found.index));
    const name = tag ? (found[1] !== undefined ? "string" : found[2] !== undefined ? "key" : "word") : found[1] !== undefined ? "comment" : found[2] !== undefined ? "word" : "number";
    out.push([name, found[0]]);
    done = expression.lastIndex;
    if (tag ? found[3] !== undefined : found[2] !== undefined) tag = !tag;
  }
  if (done < text.length) out.push(text.slice(done));
  return out;
}

/** Spans for a text of code. */
export function colourCode(text, language) {
  const out = document.createDocumentFragment();
  for (const part of codeParts(text, language)) out.append(typeof part === "string" ? part : make("span", { class: `code-${part[0]}` }, part[1]));
  return out;
}
