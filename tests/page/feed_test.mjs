// What the dashboard makes of frames, without a browser. node feed_test.mjs FOLDER_OF_THE_PAGE
import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";

globalThis.addEventListener = () => {};
globalThis.document = { addEventListener() {} };
const { Feed, quantile } = await import(`${pathToFileURL(process.argv[2])}/feed.js`);

const columns = ["at_unix_ms", "requests_running", "generation_tokens"];
const feed = new Feed("");
const tell = (frame) => feed.onMessage(JSON.stringify(frame));
tell({ type: "history", columns, first_token_bounds_s: [0.1, 1], gap_bounds_s: [0.01],
  fine: [[10_000, 2, 100, [0, 4], []], [1000, 1, 50, [0, 1, 2, 3], []], [2000, -3, -150, [], [1, 7]]],
  coarse: [[0, 0, 0, [], []]] });

// Rows are differences to the row before.
assert.deepEqual(feed.values(feed.fine, "requests_running"), [2, 3, 0]);
assert.deepEqual(feed.fine[2].first, [5, 0, 3]);
// A rate is unknown before the first row, and where a counter began anew.
assert.deepEqual(feed.rates(feed.fine, "generation_tokens"), [null, 50, null]);
assert.deepEqual(feed.distribution(feed.fine, "first"), [1, 0, 3]);
assert.deepEqual(feed.distribution(feed.fine, "gaps"), [0, 7]);

// A sample's row is whole. One that history told of already is not taken twice.
tell({ type: "sample", first_token_bounds_s: [0.1, 1], gap_bounds_s: [0.01], row: [13_000, 0, 0, [0, 5], []] });
assert.equal(feed.fine.length, 3);
tell({ type: "sample", first_token_bounds_s: [0.1, 1], gap_bounds_s: [0.01], row: [14_000, 1, 80, [0, 6], []] });
assert.equal(feed.fine.length, 4);
assert.equal(feed.coarse.length, 2, "the first for ten seconds is kept for an hour too");
for (let i = 15; i < 2000; ++i) tell({ type: "sample", first_token_bounds_s: [0.1, 1], gap_bounds_s: [0.01], row: [1000 * i, 1, 80, [0, 6], []] });
assert.equal(feed.fine.length, 300);
assert.equal(feed.rows(60).at(-1), feed.fine.at(-1));
for (let i = 2000; i < 9000; ++i) tell({ type: "sample", first_token_bounds_s: [0.1, 1], gap_bounds_s: [0.01], row: [1000 * i, 1, 80, [0, 6], []] });
assert.equal(feed.coarse.length, 360);

// A server whose first model has yet to be loaded knows no buckets.
const early = new Feed("");
early.onMessage(JSON.stringify({ type: "history", columns, first_token_bounds_s: [], gap_bounds_s: [], fine: [[0, 0, 0, [], []]], coarse: [] }));
early.onMessage(JSON.stringify({ type: "sample", first_token_bounds_s: [0.1, 1], gap_bounds_s: [0.01], row: [1000, 0, 9, [1, 9], [1, 3]] }));
assert.deepEqual(early.distribution(early.fine, "first"), [0, 9, 0]);
assert.deepEqual(early.distribution(early.fine, "gaps"), [0, 3]);

// What is no frame is ignored; faults replace those of the same id and are bounded.
for (const text of ["", "[]", "{}", "null", "nonsense"]) assert.doesNotThrow(() => feed.onMessage(text), text);
for (let id = 1; id < 500; ++id) tell({ type: "faults", faults: [{ id, times: 1 }] });
tell({ type: "faults", faults: [{ id: 499, times: 2 }] });
assert.equal(feed.faults.length, 200);
assert.equal(feed.faults.at(-1).times, 2);

// As Prometheus' histogram_quantile().
assert.equal(quantile([0.1, 1], [0, 0, 0], 0.5), null);
assert.equal(quantile([0.1, 1], [10, 0, 0], 0.5), 0.05);
assert.equal(quantile([0.1, 1], [5, 5, 0], 0.75), 0.55);
assert.equal(quantile([0.1, 1], [0, 0, 4], 0.5), 1);
console.log("feed: fine");
