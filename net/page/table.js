// A table whose figures change while it is read: rows keep their place in the document, and only texts that differ
// are written.
import { make } from "./dom.js";

export class LiveTable {
  #columns;
  #body = make("tbody");
  #rows = new Map(); // key -> {row, cells}
  #empty;

  /** `columns` are [title, kind]; kind "number" is set to the right. `empty` is said when there are no rows. */
  constructor(label, columns, empty) {
    this.#columns = columns;
    this.#empty = make("p", { class: "hint" }, empty);
    this.#empty.hidden = true;
    this.table = make("div", { class: "table", role: "region", "aria-label": label, tabindex: "0" }, make("table", {},
      make("thead", {}, make("tr", {}, ...columns.map(([title, kind]) => make("th", { scope: "col", class: kind ?? null }, title)))), this.#body));
    this.element = make("div", {}, this.table, this.#empty);
  }

  /** `rows` are [key, [text, ...]]. */
  show(rows) {
    this.table.hidden = rows.length === 0;
    this.#empty.hidden = rows.length > 0;
    const wanted = new Set(rows.map(([key]) => key));
    for (const [key, { row }] of this.#rows) {
      if (wanted.has(key)) continue;
      row.remove();
      this.#rows.delete(key);
    }
    rows.forEach(([key, texts], at) => {
      const known = this.#rows.get(key) ?? this.#add(key);
      if (this.#body.children[at] !== known.row) this.#body.insertBefore(known.row, this.#body.children[at] ?? null);
      texts.forEach((text, i) => {
        if (known.cells[i].textContent !== text) known.cells[i].textContent = text;
      });
    });
  }

  #add(key) {
    const cells = this.#columns.map(([, kind], i) => (i === 0 ? make("th", { scope: "row" }) : make("td", { class: kind ?? null })));
    const added = { row: make("tr", {}, ...cells), cells };
    this.#rows.set(key, added);
    return added;
  }
}
