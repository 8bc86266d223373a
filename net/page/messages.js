// The messages that are shown: one article each, with its text, what became of it, and what can be done with it.
import { splitFiles } from "./attachments.js";
import { button, copyButton, make } from "./dom.js";
import { codeBlock, MarkdownView, renderThought, toolCall } from "./markdown.js";

const names = { user: "You", assistant: "Answer", tool: "Result of a tool" };

const notes = {
  waiting: "The connection was lost. The question is asked again when the server is back.",
  stopped: "Stopped.",
  interrupted: "This answer was not finished: the page was closed or loaded anew.",
};

function noteOf(node) {
  if (node.note) return node.note;
  if (node.status === "waiting" && node.response_id) return "The connection was lost. The answer goes on when the server is back.";
  if (node.status === "cut") return `The answer was cut at its longest length, ${node.usage?.output_tokens ?? "?"} tokens. Continue goes on with it; Settings has the limit.`;
  return notes[node.status] ?? "";
}

function figuresOf(node) {
  const parts = [];
  if (node.model) parts.push(node.model);
  const tokens = node.usage?.output_tokens;
  if (tokens !== undefined) parts.push(`${tokens} ${tokens === 1 ? "token" : "tokens"}`);
  if (tokens > 1 && node.lasted_ms > 20) parts.push(`${Math.round(((tokens - 1) * 1000) / node.lasted_ms)} tokens/s`);
  if (node.first_ms !== undefined) parts.push(`first after ${Math.round(node.first_ms)}\u00a0ms`);
  return parts.join(" · ");
}

/** What a user wrote, with each file that went with it folded in. */
function userBody(text) {
  return splitFiles(text).map((part) => (typeof part === "string" ? make("p", { class: "plain", dir: "auto" }, part)
    : make("details", { class: "file" }, make("summary", {}, `${part.name} · ${part.text.split("\n").length} lines`), codeBlock(part.text, part.name))));
}

/** Whether an answer can be gone on with. */
function canGoOn(node) {
  return ["cut", "stopped", "interrupted"].includes(node.status) && node.text !== "" && !(node.calls?.length > 0);
}

/** Shows the path of a conversation in `log`; `actions` are those of chat.js. */
export class MessageList {
  #log;
  #actions;
  #entries = new Map(); // node id -> what changes while its answer comes

  constructor(log, actions) {
    this.#log = log;
    this.#actions = actions;
  }

  /** `siblings(node)` lists the versions of a node; `dropped` is the id of the last that is no longer sent. */
  show(path, siblings, dropped) {
    const focused = document.activeElement?.closest?.("[data-node]")?.dataset.node;
    const label = document.activeElement?.getAttribute?.("aria-label") ?? document.activeElement?.textContent;
    this.#entries.clear();
    this.#log.replaceChildren(...path.flatMap((node) => {
      const article = this.#article(node, siblings(node));
      return node.id === dropped ? [article, this.#divider()] : [article];
    }));
    if (focused === undefined || document.activeElement !== document.body) return;
    const article = this.#entries.get(focused)?.article ?? this.#log.lastElementChild;
    const same = [...(article?.querySelectorAll("button") ?? [])].find((one) => (one.getAttribute("aria-label") ?? one.textContent) === label);
    (same ?? article)?.focus();
  }

  /** Shows what came since; false when the node is not on the path that is shown. */
  update(node) {
    const entry = this.#entries.get(node.id);
    if (entry === undefined) return false;
    this.#fill(entry, node);
    return true;
  }

  #divider() {
    return make("p", { class: "divider" }, make("span", {}, "What stands above is no longer sent to the model."), button("Send all again", this.#actions.sendAll));
  }

  #article(node, versions) {
    const heading = make("h2", { id: `who-${node.id}`, class: "who" }, names[node.role]);
    const thought = make("div", { class: "thoughts" });
    const body = make("div", { class: "body" });
    const note = make("p", { class: "note", hidden: true });
    const fault = make("div", { class: "fault", hidden: true });
    const foot = make("div", { class: "foot" });
    const article = make("article", { class: `message ${node.role}`, "aria-labelledby": heading.id, tabindex: "-1", "data-node": node.id },
      heading, thought, body, note, fault, foot);
    const entry = { article, thought, body, note, fault, foot, versions, view: new MarkdownView(body), state: null, showsTokens: false };
    this.#entries.set(node.id, entry);
    this.#fill(entry, node);
    return article;
  }

  #fill(entry, node) {
    const running = node.status === "running";
    entry.article.classList.toggle("running", running);
    entry.article.setAttribute("aria-busy", running ? "true" : "false");
    this.#fillBody(entry, node, running);
    const note = noteOf(node);
    entry.note.hidden = note === "";
    entry.note.textContent = note;
    const state = `${node.status} ${node.usage?.output_tokens}`;
    if (entry.state === state) return;
    entry.state = state;
    entry.fault.hidden = node.status !== "failed";
    entry.fault.replaceChildren(...(node.status !== "failed" ? [] : [make("strong", {}, "No answer: "), node.error ?? "unknown error",
      ...(node.error_code === "context_length_exceeded" && this.#actions.isLeaf(node) ? [make("div", { class: "offers" }, ...this.#actions.offers(node))] : [])]));
    entry.foot.replaceChildren(...this.#buttons(entry, node, running));
  }

  #fillBody(entry, node, running) {
    if (node.role === "user") {
      if (entry.shown !== node.text) entry.body.replaceChildren(...userBody(node.text));
      entry.shown = node.text;
      return;
    }
    if (node.role === "tool") return entry.body.replaceChildren(codeBlock(node.text, ""));
    this.#fillThought(entry, node, running);
    if (entry.showsTokens) return;
    entry.view.update(node.text, !running);
    entry.calls?.remove();
    if (node.calls?.length > 0) {
      entry.calls = make("div", { class: "calls" }, ...node.calls.map((call) => toolCall(call.name, call.arguments, !running)));
      entry.body.after(entry.calls);
      if (!running && this.#actions.isLeaf(node)) entry.calls.append(this.#resultForm(node));
    }
  }

  #fillThought(entry, node, running) {
    const key = `${node.text !== "" || !running} ${node.thought ?? ""}`;
    if (entry.thoughtKey === key) return;
    entry.thoughtKey = key;
    entry.thought.replaceChildren(...(node.thought ? [renderThought(node.thought, node.text !== "" || !running)] : []));
  }

  #buttons(entry, node, running) {
    if (running) return [];
    const out = node.role === "assistant" ? [make("span", { class: "figures" }, figuresOf(node))] : [];
    if (entry.versions.length > 1) out.push(this.#versions(node, entry.versions));
    out.push(copyButton(() => node.text));
    if (node.role === "user") out.push(button("Edit", () => this.#edit(entry, node)));
    if (node.role === "assistant") {
      if (canGoOn(node) && this.#actions.isLeaf(node)) out.push(button("Continue", () => this.#actions.goOn(node), { class: "quiet always" }));
      if (node.status !== "waiting") out.push(button(node.status === "done" || node.status === "cut" ? "Regenerate" : "Try again", () => this.#actions.regenerate(node)));
      if (node.tokens?.length > 0) out.push(this.#tokenSwitch(entry, node));
    }
    return out;
  }

  #versions(node, versions) {
    const at = versions.indexOf(node);
    const step = (by) => this.#actions.select(versions[at + by]);
    return make("span", { class: "versions", role: "group", "aria-label": "Versions" },
      button("‹", () => step(-1), { "aria-label": "Previous version", disabled: at === 0 }),
      make("span", {}, `${at + 1} / ${versions.length}`),
      button("›", () => step(1), { "aria-label": "Next version", disabled: at === versions.length - 1 }));
  }

  #edit(entry, node) {
    const field = make("textarea", { rows: Math.min(12, node.text.split("\n").length + 1), "aria-label": "Edit the message" });
    field.value = node.text;
    const leave = () => {
      entry.body.replaceChildren(...userBody(node.text));
      entry.foot.hidden = false;
      entry.foot.querySelector("button")?.focus();
    };
    const send = () => {
      if (field.value.trim() !== "") this.#actions.edit(node, field.value);
    };
    field.addEventListener("keydown", (event) => {
      if (event.key === "Escape") leave();
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      send();
    });
    entry.foot.hidden = true;
    entry.body.replaceChildren(field, make("div", { class: "foot" }, button("Send as a new branch", send, { class: "primary" }), button("Cancel", leave)));
    field.focus();
  }

  #resultForm(node) {
    const areas = node.calls.map((call) => make("textarea", { rows: 2, "aria-label": `Result of ${call.name}`, placeholder: `What ${call.name} gives` }));
    return make("div", { class: "results" }, ...areas, button("Send results", () =>
      this.#actions.answerCalls(node, areas.map((area) => area.value)), { class: "primary" }));
  }

  #tokenSwitch(entry, node) {
    const self = button("Probabilities", () => {
      entry.showsTokens = !entry.showsTokens;
      self.setAttribute("aria-pressed", String(entry.showsTokens));
      if (entry.showsTokens) {
        this.#actions.withExtras(({ tokenList }) => entry.showsTokens && entry.body.replaceChildren(tokenList(node.tokens)));
      } else {
        entry.view = new MarkdownView(entry.body);
        entry.body.replaceChildren();
        entry.view.update(node.text, true);
      }
    }, { "aria-pressed": "false" });
    return self;
  }
}
