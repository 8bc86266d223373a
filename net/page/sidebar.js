// The list of chats: which are kept, a search through them, what can be done with each.
import { button, make } from "./dom.js";
import { holds, listConversations } from "./store.js";

const searchAfter = 150; // milliseconds without a key

export class Sidebar {
  #list = document.getElementById("chat-list");
  #search = document.getElementById("search");
  #actions;
  #current = null;

  /** `actions` has open(id) and options(conversation). */
  constructor(actions) {
    this.#actions = actions;
    let timer = 0;
    this.#search.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.show(this.#current), searchAfter);
    });
  }

  show(current) {
    this.#current = current;
    const kept = listConversations();
    const all = kept.some((one) => one.id === current.id) ? kept : [current, ...kept];
    const wanted = this.#search.value.trim();
    const shown = wanted === "" ? all : all.filter((one) => holds(one, wanted));
    this.#list.replaceChildren(...shown.map((one) => this.#row(one)),
      ...(shown.length > 0 ? [] : [make("li", { class: "hint" }, "No chat holds this text.")]));
    document.getElementById("search-state").textContent = wanted === "" ? "" : `${shown.length} ${shown.length === 1 ? "chat" : "chats"} found`;
  }

  #row(one) {
    return make("li", {},
      button(one.title, () => this.#actions.open(one.id), { class: "chat", title: one.title, "aria-current": one.id === this.#current.id ? "true" : null }),
      button("⋯", () => this.#actions.options(one), { class: "quiet options", "aria-label": `Options of ${one.title}`, "aria-haspopup": "dialog" }));
  }
}
