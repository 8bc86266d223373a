// Text files that go with a message: each becomes a fenced block with the file's name in front of what was written.
import { announce, button, make } from "./dom.js";

const mostBytes = 256 * 1024;
const mostFiles = 10;

/** The text of a file; throws an Error where it is too large or no text. */
export async function readText(file) {
  if (file.size > mostBytes) throw new Error(`${file.name} has ${Math.ceil(file.size / 1024)} KiB; at most ${mostBytes / 1024} KiB go with a message.`);
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    throw new Error(`${file.name} is not a text file in UTF-8. Pictures and other binary files cannot be read.`);
  }
  if (/[\0-\x08\x0e-\x1a\x1c-\x1f]/.test(text)) throw new Error(`${file.name} holds bytes that no text has. Pictures and other binary files cannot be read.`);
  return text;
}

/** A fenced block that no line of the text ends. */
export function fenced(name, text) {
  const longest = Math.max(2, ...(text.match(/^ {0,3}`{3,}/gm) ?? []).map((one) => one.trim().length));
  const ticks = "`".repeat(longest + 1);
  const plain = name.replace(/[\s`]+/g, "-").slice(-80) || "file";
  return `${ticks}${plain}\n${text.replace(/\r\n?/g, "\n").replace(/\n$/, "")}\n${ticks}`;
}

/** A message as it is shown: strings, and {name, text} for each fenced block that has a name. */
export function splitFiles(text) {
  const out = [];
  let rest = [];
  const lines = text.split("\n");
  const flush = () => {
    const plain = rest.join("\n").replace(/^\n+|\n+$/g, "");
    if (plain !== "") out.push(plain);
    rest = [];
  };
  const missing = new Set(); // fences that the rest of the text does not close
  for (let at = 0; at < lines.length; ++at) {
    const begun = /^(`{3,})([^`\s]+)$/.exec(lines[at]);
    const end = begun === null || missing.has(begun[1]) ? -1 : lines.indexOf(begun[1], at + 1);
    if (end < 0) {
      if (begun !== null) missing.add(begun[1]);
      rest.push(lines[at]);
      continue;
    }
    flush();
    out.push({ name: begun[2], text: lines.slice(at + 1, end).join("\n") });
    at = end;
  }
  flush();
  return out;
}

/** The files that wait for the next message, as a list with a button for each to take it out. */
export class Attachments {
  #list = document.getElementById("attachments");
  #files = []; // {name, text}
  #onfault;

  /** `onfault(text)` says why a file was not taken. */
  constructor(onfault) {
    this.#onfault = onfault;
  }

  get empty() {
    return this.#files.length === 0;
  }

  async add(files) {
    for (const file of files) {
      try {
        const text = await readText(file);
        if (this.#files.length >= mostFiles) throw new Error(`At most ${mostFiles} files go with a message.`);
        this.#files.push({ name: file.name, text });
        announce(`Attached ${file.name}`);
      } catch (error) {
        this.#onfault(error.message);
      }
    }
    this.#show();
  }

  /** The message with its files; they are taken out. */
  take(text) {
    const parts = this.#files.map((file) => fenced(file.name, file.text));
    this.#files = [];
    this.#show();
    return [...parts, text].filter((part) => part !== "").join("\n\n");
  }

  #show() {
    this.#list.hidden = this.empty;
    this.#list.replaceChildren(...this.#files.map((file) => make("li", {}, make("span", {}, file.name),
      button("×", () => {
        this.#files.splice(this.#files.indexOf(file), 1);
        this.#show();
        document.getElementById("prompt").focus();
        announce(`Took out ${file.name}`);
      }, { "aria-label": `Take out ${file.name}` }))));
  }
}
