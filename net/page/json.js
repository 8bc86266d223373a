// JSON as people read it: indented, coloured, every number and string as it was written.
import { make } from "./dom.js";

const token = /("(?:[^"\\]|\\.)*")(\s*:)?|(-?\d[\d.eE+-]*)|(true|false|null)|([{}[\],])|\s+/gy;
const most = 200_000; // characters: above this a text is shown as it is

/** Whether a text is one JSON object or list. */
export function isJson(text) {
  const trimmed = text.trim();
  if (trimmed.length > most || !/^[{[]/.test(trimmed)) return false;
  try {
    JSON.parse(trimmed);
    return true;
  } catch {
    return false;
  }
}

/** Whether an unfinished text can still become JSON: what decides how a streamed answer is shown. */
export function looksLikeJson(text) {
  return /^\s*(\{\s*("|$)|\[\s*[{"\d])/.test(text);
}

/** The same tokens with line breaks and two spaces for each level; the text itself where it is not JSON. */
export function indentJson(text) {
  if (!isJson(text)) return text;
  let out = "";
  let depth = 0;
  token.lastIndex = 0; // matchAll() begins where the expression was left
  const line = () => "\n" + "  ".repeat(depth);
  const matches = [...text.trim().matchAll(token)].filter((found) => found[0].trim() !== "");
  matches.forEach((found, i) => {
    const mark = found[5];
    if (mark === "{" || mark === "[") {
      depth += 1;
      const empty = /^[}\]]$/.test(matches[i + 1]?.[0] ?? "");
      out += mark + (empty ? "" : line());
    } else if (mark === "}" || mark === "]") {
      depth -= 1;
      const empty = /^[{[]$/.test(matches[i - 1]?.[0] ?? "");
      out += (empty ? "" : line()) + mark;
    } else if (mark === ",") {
      out += "," + line();
    } else {
      out += found[1] !== undefined && found[2] !== undefined ? found[1] + ": " : found[0];
    }
  });
  return out;
}

/** Spans for a text of JSON, whole or cut off. */
export function colourJson(text) {
  const out = document.createDocumentFragment();
  if (text.length > most) {
    out.append(text);
    return out;
  }
  let at = 0;
  token.lastIndex = 0;
  while (at < text.length) {
    token.lastIndex = at;
    const found = token.exec(text);
    if (found === null || found[0] === "") {
      out.append(text.slice(at));
      break;
    }
    const [whole, string, colon, number, word] = found;
    if (string !== undefined && colon !== undefined) out.append(make("span", { class: "code-key" }, string), colon);
    else if (string !== undefined) out.append(make("span", { class: "code-string" }, string));
    else if (number !== undefined) out.append(make("span", { class: "code-number" }, number));
    else if (word !== undefined) out.append(make("span", { class: "code-word" }, word));
    else out.append(whole);
    at += whole.length;
  }
  return out;
}
