// TeX's mathematics as a tree for MathML: texTree() gives [tag, attributes, children], or null for what it does not
// know, so that the TeX can be shown as it is. Tags, attributes and their values are those written here; only the
// text of leaves comes from the formula. Time is linear in the formula but for bounded depth.
import { accents, fences, functions, growing, integrals, largeOperators, letters, limits, matrices, spaces, styledCharacter, styles, symbols } from "./tex_symbols.js";

const most = 5000; // characters
const maxDepth = 100; // of atoms within atoms

class Unknown extends Error {}

const el = (tag, children, attributes = {}) => [tag, attributes, children];
const row = (nodes) => (nodes.length === 1 ? nodes[0] : el("mrow", nodes));
const mo = (text, attributes = {}) => el("mo", [text], attributes);
const space = (width) => el("mspace", [], { width });
const fence = (text, form) => mo(text, { form, fence: "true", stretchy: "true" });
const overUnder = new WeakSet(); // nodes whose scripts stand above and below

const token = /\\[a-zA-Z]+|\\[^]|%[^\n]*|\s+|\d+(?:[.,]\d+)*|[^]/gu;
const sizes = { big: "1.2em", Big: "1.8em", bigg: "2.4em", Bigg: "3em" };
const replaced = { "-": "−", "*": "∗", "'": "′" };
const ignored = new Set(["label", "nonumber", "notag", "hline", "toprule", "midrule", "bottomrule", "displaylimits", "allowbreak", "relax", "mathstrut", "strut"]);
const alignments = { aligned: "rl", align: "rl", alignedat: "rl", alignat: "rl", split: "rl", eqnarray: "rcl", gather: "c", gathered: "c", equation: "c", multline: "c",
  cases: "l", rcases: "l", dcases: "l", array: "c" };

/** A formula as a tree; null where it holds what is not known here. */
export function texTree(tex, display) {
  if (tex.length > most) return null;
  try {
    return el("math", [row(new Parser(tex.match(token) ?? []).whole())], display ? { display: "block" } : {});
  } catch (error) {
    if (error instanceof Unknown) return null;
    throw error;
  }
}

class Parser {
  #tokens;
  #at = 0;
  #depth = 0;

  constructor(tokens) {
    this.#tokens = tokens.filter((one) => !one.startsWith("%"));
  }

  whole() {
    const rows = this.#rows([]);
    if (this.#peek() !== undefined) throw new Unknown();
    if (rows.length === 1 && rows[0].length === 1) return rows[0][0];
    return [this.#table(rows, rows.every((cells) => cells.length === 1) ? "l" : "rl", true)];
  }

  // --- tokens --------------------------------------------------------------------------------------------------

  #peek() {
    while (/^\s/.test(this.#tokens[this.#at] ?? "")) this.#at += 1;
    return this.#tokens[this.#at];
  }

  #next() {
    const one = this.#peek();
    if (one === undefined) throw new Unknown();
    this.#at += 1;
    return one;
  }

  #take(wanted) {
    if (this.#peek() !== wanted) return false;
    this.#at += 1;
    return true;
  }

  #expect(wanted) {
    if (!this.#take(wanted)) throw new Unknown();
  }

  /** The text between braces as it stands. */
  #raw() {
    this.#expect("{");
    let text = "";
    for (let level = 1; ; this.#at += 1) {
      const one = this.#tokens[this.#at];
      if (one === undefined) throw new Unknown();
      if (one === "{") level += 1;
      if (one === "}" && --level === 0) break;
      text += one;
    }
    this.#at += 1;
    return text;
  }

  // --- rows, groups, arguments ---------------------------------------------------------------------------------

  /** Nodes up to one of these tokens, which is left, or to the end. */
  #nodes(stops) {
    const out = [];
    for (let one = this.#peek(); one !== undefined && !stops.includes(one); one = this.#peek()) {
      if (/^\\(?:display|text|script|scriptscript)style$/.test(one)) {
        this.#at += 1;
        out.push(el("mstyle", this.#nodes(stops), { displaystyle: String(one === "\\displaystyle") }));
      } else if (one === "\\over") {
        this.#at += 1;
        return [el("mfrac", [row(out), row(this.#nodes(stops))])];
      } else {
        out.push(...this.#scripted());
      }
    }
    return out;
  }

  #group(close) {
    const nodes = this.#nodes([close]);
    this.#expect(close);
    return row(nodes);
  }

  /** A group or one token; of a number its first digit alone. */
  #argument() {
    const one = this.#next();
    if (/^\d./.test(one)) {
      this.#tokens[--this.#at] = one.slice(1);
      return el("mn", [one[0]]);
    }
    this.#at -= 1;
    return row(this.#atom());
  }

  #optional() {
    return this.#take("[") ? this.#group("]") : null;
  }

  /** Rows of cells up to one of these tokens, which is left, or to the end. */
  #rows(ends) {
    const rows = [[]];
    for (;;) {
      rows.at(-1).push(this.#nodes(["&", "\\\\", "\\cr", ...ends]));
      if (this.#take("&")) continue;
      if (!this.#take("\\\\") && !this.#take("\\cr")) return rows;
      if (this.#peek() === "[" && /^\[\s*-?[\d.]+\s*[a-z]{2}\s*\]/.test(this.#tokens.slice(this.#at, this.#at + 9).join(""))) this.#optional(); // room between rows
      if (this.#peek() === undefined || ends.includes(this.#peek())) return rows;
      rows.push([]);
    }
  }

  /** `align` is repeated over the columns. */
  #table(rows, align, large) {
    const sides = { l: "left", r: "right", c: "center" };
    return el("mtable", rows.map((cells) => el("mtr", cells.map((cell, i) => el("mtd", cell, { class: `cell-${sides[align[i % align.length]]}` })))),
      large ? { displaystyle: "true", class: align === "rl" || align === "rcl" ? "aligned" : "lines" } : {});
  }

  #environment() {
    const name = this.#raw();
    const kind = name.replace(/\*$/, "");
    let align = alignments[kind] ?? "c";
    if (kind === "array") align = this.#raw().replace(/[^lcr]/g, "") || "c";
    if (kind === "alignat" || kind === "alignedat") this.#raw();
    if (!matrices.has(kind) && !Object.hasOwn(alignments, kind)) throw new Unknown();
    const rows = this.#rows(["\\end"]);
    this.#expect("\\end");
    if (this.#raw() !== name) throw new Unknown();
    if (matrices.has(kind)) {
      const [open, close] = matrices.get(kind);
      const table = this.#table(rows, align, false);
      return open === "" ? table : el("mrow", [fence(open, "prefix"), table, fence(close, "postfix")]);
    }
    const table = this.#table(rows, align, !["cases", "rcases", "array"].includes(kind));
    if (kind === "rcases") return el("mrow", [table, fence("}", "postfix")]);
    return kind.endsWith("cases") ? el("mrow", [fence("{", "prefix"), table]) : table;
  }

  // --- atoms and their scripts ---------------------------------------------------------------------------------

  /** An atom with what stands above and below, or nothing where a command shows nothing. */
  #scripted() {
    const atoms = ["^", "_", "'"].includes(this.#peek()) ? [el("mrow", [])] : this.#atom();
    const base = atoms.at(-1);
    if (base === undefined) return [];
    let over = overUnder.has(base);
    if (this.#take("\\limits")) over = true;
    else if (this.#take("\\nolimits")) over = false;
    let primes = "";
    let sub = null;
    let sup = null;
    for (let one = this.#peek(); ["^", "_", "'"].includes(one); one = this.#peek()) {
      this.#at += 1;
      if (one === "'") primes += "′";
      else if (one === "^" && sup === null) sup = this.#argument();
      else if (one === "_" && sub === null) sub = this.#argument();
      else throw new Unknown();
    }
    if (primes !== "") sup = sup === null ? mo(primes) : row([mo(primes), sup]);
    if (sub === null && sup === null) return atoms;
    const tag = sub === null ? (over ? "mover" : "msup") : sup === null ? (over ? "munder" : "msub") : over ? "munderover" : "msubsup";
    return [...atoms.slice(0, -1), el(tag, [base, sub, sup].filter((one) => one !== null))];
  }

  /** The nodes of one token or command with its arguments; none where it shows nothing. */
  #atom() {
    if (++this.#depth > maxDepth) throw new Unknown();
    const nodes = this.#atomAt(this.#next());
    this.#depth -= 1;
    return nodes;
  }

  #atomAt(one) {
    if (one === "{") return [this.#group("}")];
    if (/^\d/.test(one)) return [el("mn", [one])];
    if (one.startsWith("\\")) return this.#command(one.slice(1));
    if (/^[\p{L}\p{M}]/u.test(one)) return [el("mi", [one])];
    if (one === "~") return [space("0.25em")];
    if (/^[}&^_$#]/.test(one)) throw new Unknown();
    if ("()[]|/".includes(one)) return [mo(one, one === "|" || one === "/" ? { stretchy: "false", lspace: "0", rspace: "0" } : { stretchy: "false" })];
    return [mo(replaced[one] ?? one)];
  }

  #command(name) {
    if (letters.has(name)) return [el("mi", [letters.get(name)], /^\p{Lu}/u.test(letters.get(name)) ? { mathvariant: "normal" } : {})];
    if (symbols.has(name)) return [mo(symbols.get(name))];
    if (spaces.has(name)) return [space(spaces.get(name))];
    if (fences.has(`\\${name}`)) return [mo(fences.get(`\\${name}`), { stretchy: "false" })];
    if (integrals.has(name)) return [mo(integrals.get(name))];
    if (largeOperators.has(name)) return [this.#limited(mo(largeOperators.get(name)))];
    if (limits.has(name)) return [this.#limited(this.#named(limits.get(name), { movablelimits: "true" }))];
    if (functions.has(name)) return [this.#named(name)];
    if (accents.has(name)) return [this.#accent(name)];
    if (Object.hasOwn(styles, name)) return [restyle(name === "textbf" ? el("mtext", [textOf(this.#raw())]) : this.#argument(), styles[name])];
    const sized = /^(big|Big|bigg|Bigg)[lrm]?$/.exec(name);
    if (sized !== null) return [mo(this.#delimiter(), { minsize: sizes[sized[1]], maxsize: sizes[sized[1]], stretchy: "true" })];
    if (ignored.has(name)) {
      if (name === "label") this.#raw();
      return [];
    }
    if (/^[%$#&_{}]$/.test(name)) return [mo(name)];
    return this.#construct(name);
  }

  #construct(name) {
    switch (name) {
      case "frac":
      case "cfrac":
        return [el("mfrac", [this.#argument(), this.#argument()])];
      case "dfrac":
      case "tfrac":
        return [el("mstyle", [el("mfrac", [this.#argument(), this.#argument()])], { displaystyle: String(name === "dfrac") })];
      case "binom":
      case "dbinom":
      case "tbinom":
        return [el("mrow", [fence("(", "prefix"), el("mfrac", [this.#argument(), this.#argument()], { linethickness: "0" }), fence(")", "postfix")])];
      case "sqrt": {
        const index = this.#optional();
        const body = this.#argument();
        return [index === null ? el("msqrt", [body]) : el("mroot", [body, index])];
      }
      case "text":
      case "textrm":
      case "textnormal":
      case "textit":
      case "textsf":
      case "texttt":
      case "mbox":
        return [el("mtext", [textOf(this.#raw())])];
      case "mathrm":
      case "mathit":
      case "mathnormal":
        return [this.#upright(name === "mathrm")];
      case "operatorname": {
        const over = this.#take("*");
        const node = this.#named(textOf(this.#raw().replace(/\\[,;: ]/g, " ").trim()), over ? { movablelimits: "true" } : {});
        return [over ? this.#limited(node) : node];
      }
      case "mathop":
        return [this.#limited(this.#argument())];
      case "mathrel":
      case "mathbin":
      case "mathord":
      case "mathopen":
      case "mathclose":
      case "mathpunct":
      case "ensuremath":
        return [this.#argument()];
      case "left":
        return [this.#fenced()];
      case "middle":
        return [mo(this.#delimiter(), { fence: "true", stretchy: "true" })];
      case "overset":
      case "stackrel": {
        const above = this.#argument();
        return [el("mover", [this.#argument(), above])];
      }
      case "underset": {
        const below = this.#argument();
        return [el("munder", [this.#argument(), below])];
      }
      case "xrightarrow":
      case "xleftarrow": {
        const below = this.#optional();
        const arrow = mo(name === "xrightarrow" ? "→" : "←", { stretchy: "true" });
        const above = this.#argument();
        return [below === null ? el("mover", [arrow, above]) : el("munderover", [arrow, below, above])];
      }
      case "substack": {
        this.#expect("{");
        const rows = this.#rows(["}"]);
        this.#expect("}");
        return [this.#table(rows, "c", false)];
      }
      case "begin":
        return [this.#environment()];
      case "not": {
        const [tag, attributes, children] = row(this.#atom());
        if (typeof children[0] !== "string") throw new Unknown();
        return [el(tag, [`${children[0]}\u0338`], attributes)];
      }
      case "pmod":
        return [space("0.5em"), mo("(", { stretchy: "false" }), el("mi", ["mod"]), space("0.3em"), this.#argument(), mo(")", { stretchy: "false" })];
      case "mod":
        return [space("0.5em"), el("mi", ["mod"]), space("0.3em")];
      case "bmod":
        return [mo("mod", { lspace: "0.2222em", rspace: "0.2222em" })];
      case "tag":
        this.#take("*");
        return [space("2em"), el("mtext", [`(${textOf(this.#raw())})`])];
      case "boxed":
      case "fbox":
        return [el("mrow", [name === "fbox" ? el("mtext", [textOf(this.#raw())]) : this.#argument()], { class: "boxed" })];
      case "cancel":
      case "bcancel":
      case "xcancel":
        return [el("mrow", [this.#argument()], { class: "cancelled" })];
      case "phantom":
      case "hphantom":
      case "vphantom":
        return [el("mphantom", [this.#argument()])];
      case "color":
        this.#raw();
        return [];
      case "textcolor":
        this.#raw();
        return [this.#argument()];
      case "hspace": {
        this.#take("*");
        const width = this.#raw().trim();
        if (!/^-?\d{0,3}(?:\.\d{1,4})?(?:em|ex|px|pt|cm|mm)$/.test(width)) throw new Unknown();
        return [space(width)];
      }
    }
    throw new Unknown();
  }

  // --- parts ---------------------------------------------------------------------------------------------------

  #limited(node) {
    overUnder.add(node);
    return node;
  }

  /** A function's name, set apart from its argument where that has no parentheses. */
  #named(name, attributes = {}) {
    const close = ["(", "[", "\\left", "\\big", "\\Big", "\\bigl", "\\Bigl"].includes(this.#peek());
    return mo(name, { form: "prefix", lspace: "0.1667em", rspace: close ? "0" : "0.1667em", ...attributes });
  }

  #accent(name) {
    const below = name.startsWith("under");
    const body = this.#argument();
    const mark = mo(accents.get(name), { stretchy: String(growing.has(name)) });
    const node = el(below ? "munder" : "mover", [body, mark], below ? { accentunder: "true" } : { accent: "true" });
    return name.endsWith("brace") ? this.#limited(node) : node;
  }

  #upright(normal) {
    const from = this.#at;
    if (this.#peek() === "{" && normal) {
      const text = this.#raw();
      if (/^[A-Za-z0-9 ]+$/.test(text)) return el("mi", [text.trim()], { mathvariant: "normal" });
      this.#at = from;
    }
    const body = this.#argument();
    return normal ? upright(body) : body;
  }

  #delimiter() {
    const one = this.#next();
    if (!fences.has(one)) throw new Unknown();
    return fences.get(one);
  }

  #fenced() {
    const open = this.#delimiter();
    const body = this.#nodes(["\\right"]);
    this.#expect("\\right");
    const close = this.#delimiter();
    return el("mrow", [...(open === "" ? [] : [fence(open, "prefix")]), ...body, ...(close === "" ? [] : [fence(close, "postfix")])]);
  }
}

/** Text between braces with its escapes undone. */
function textOf(raw) {
  const text = raw.replace(/\\([%_&$#{} ])/g, "$1").replace(/[{}~]/g, (one) => (one === "~" ? " " : ""));
  if (/[\\$]/.test(text)) throw new Unknown();
  return text.replace(/\s+/g, "\u00a0");
}

function restyle([tag, attributes, children], style) {
  const inner = children.map((child) => (typeof child !== "string" ? restyle(child, style)
    : ["mi", "mn", "mtext"].includes(tag) ? Array.from(child, (one) => styledCharacter(one, style)).join("") : child));
  return [tag, tag === "mi" ? {} : attributes, inner];
}

function upright([tag, attributes, children]) {
  return [tag, tag === "mi" ? { mathvariant: "normal" } : attributes, children.map((child) => (typeof child === "string" ? child : upright(child)))];
}
