// What the daemon tells an administrator over /admin/stream: an hour of figures, then one sample a second.
//
// Events of this object: "state" (see link.js), "history", "sample", "faults".
import { Link } from "./link.js";

const fineRows = 300; // one a second
const coarseRows = 360; // one in ten seconds
const coarseStep = 9_500; // milliseconds between two coarse rows, at least
const mostFaults = 200;

export class Feed extends Link {
  columns = new Map(); // name -> index in a row's values
  bounds = { first: [], gaps: [] }; // upper bounds of the buckets, in seconds
  fine = [];
  coarse = [];
  sample = null;
  faults = []; // the newest last

  constructor(key) {
    super("admin/stream", key);
  }

  async probe() {
    const reply = await this.ask("admin/state");
    return reply.body === undefined ? reply : null;
  }

  onMessage(text) {
    let message;
    try {
      message = JSON.parse(text);
    } catch {
      return;
    }
    if (message === null) return;
    if (message.type === "history") this.#takeHistory(message);
    else if (message.type === "sample") this.#takeSample(message);
    else if (message.type === "faults") this.#takeFaults(message.faults);
    else if (message.type === "error") return this.lock(`The server says: ${message.error?.message ?? "unknown error"}.`);
    else return;
    this.dispatchEvent(new Event(message.type));
  }

  /** The rows of the last five minutes, or of the last hour, the oldest first. */
  rows(minutes) {
    if (minutes <= 5) return this.fine;
    const newest = this.fine.at(-1);
    return newest === undefined || newest === this.coarse.at(-1) ? this.coarse : [...this.coarse, newest];
  }

  /** A figure of each row. */
  values(rows, column) {
    const at = this.columns.get(column);
    return rows.map((row) => row.values[at] ?? null);
  }

  /** How fast a counter grew before each row, per second; null where nobody can tell. */
  rates(rows, column) {
    const at = this.columns.get(column);
    return rows.map((row, i) => {
      if (i === 0) return null;
      const grown = row.values[at] - rows[i - 1].values[at];
      const seconds = (row.at - rows[i - 1].at) / 1000;
      return grown < 0 || !(seconds > 0) ? null : grown / seconds;
    });
  }

  /** How many observations fell into each bucket between the first and the last of these rows. */
  distribution(rows, which) {
    const first = rows[0]?.[which] ?? [];
    const last = rows.at(-1)?.[which] ?? [];
    return Array.from({ length: this.bounds[which].length + 1 }, (_, i) => Math.max(0, (last[i] ?? 0) - (first[i] ?? 0)));
  }

  #takeHistory({ columns, first_token_bounds_s, gap_bounds_s, fine, coarse }) {
    this.columns = new Map(columns.map((name, i) => [name, i]));
    this.#takeBounds(first_token_bounds_s, gap_bounds_s);
    this.fine = this.#readRows(fine);
    this.coarse = this.#readRows(coarse);
    this.faults = [];
  }

  /** The buckets are known once a model has been loaded. */
  #takeBounds(first, gaps) {
    if (first.length > 0) this.bounds = { first, gaps };
  }

  #takeSample(message) {
    this.sample = message;
    this.#takeBounds(message.first_token_bounds_s, message.gap_bounds_s);
    const row = this.#readRow(message.row, null);
    if (row.at <= (this.fine.at(-1)?.at ?? 0)) return;
    this.fine.push(row);
    if (this.fine.length > fineRows) this.fine.shift();
    if (row.at - (this.coarse.at(-1)?.at ?? 0) < coarseStep) return;
    this.coarse.push(row);
    if (this.coarse.length > coarseRows) this.coarse.shift();
  }

  #takeFaults(changed) {
    const known = new Map(this.faults.map((fault) => [fault.id, fault]));
    for (const fault of changed) known.set(fault.id, fault);
    this.faults = [...known.values()].sort((a, b) => a.id - b.id).slice(-mostFaults);
  }

  #readRows(rows) {
    let before = null;
    return rows.map((row) => (before = this.#readRow(row, before)));
  }

  /** Rows come as differences to the row before, histograms as pairs of a bucket and its difference. */
  #readRow(row, before) {
    const count = this.columns.size;
    const values = row.slice(0, count).map((value, i) => value + (before?.values[i] ?? 0));
    const counts = (which, pairs) => {
      const all = Array.from({ length: this.bounds[which].length + 1 }, (_, i) => before?.[which][i] ?? 0);
      for (let i = 0; i + 1 < pairs.length; i += 2) all[pairs[i]] = (all[pairs[i]] ?? 0) + pairs[i + 1];
      return all;
    };
    return { at: values[this.columns.get("at_unix_ms")], values, first: counts("first", row[count]), gaps: counts("gaps", row[count + 1]) };
  }
}

/** The value below which this share of the observations is, as Prometheus reckons it; null when there are none. */
export function quantile(bounds, counts, share) {
  const all = counts.reduce((sum, count) => sum + count, 0);
  if (all === 0) return null;
  let left = share * all;
  for (let i = 0; i < counts.length; ++i) {
    if (counts[i] === 0 || left > counts[i]) {
      left -= counts[i];
      continue;
    }
    if (i >= bounds.length) return bounds.at(-1) ?? null;
    const low = i === 0 ? 0 : bounds[i - 1];
    return low + ((bounds[i] - low) * left) / counts[i];
  }
  return bounds.at(-1) ?? null;
}
