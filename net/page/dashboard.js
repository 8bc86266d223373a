// The dashboard: what the feed tells, on the screen.
import { BarChart, LineChart, readable, TimelineChart, timeOfDay } from "./chart.js";
import { keyDialog } from "./dialog.js";
import { announce, button, make } from "./dom.js";
import { Feed, quantile } from "./feed.js";
import { readKey, writeKey } from "./key.js";
import { LiveTable } from "./table.js";

const $ = (id) => document.getElementById(id);
const feed = new Feed(readKey());
let minutes = 5;
let errorsSaid = 0; // the id of the newest error that was said aloud

// --- words -------------------------------------------------------------------------------------------------------

function bytes(value) {
  if (value === null || value === undefined) return "none";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let rank = 0;
  while (value >= 1024 && rank + 1 < units.length) {
    value /= 1024;
    ++rank;
  }
  return `${rank === 0 || value >= 100 ? Math.round(value) : Number(value.toPrecision(3))} ${units[rank]}`;
}

function percent(share) {
  return share === null || !Number.isFinite(share) ? "none" : `${Number((100 * share).toPrecision(3))} %`;
}

function duration(seconds) {
  if (seconds === null) return "none";
  return seconds < 1 ? `${Number((1000 * seconds).toPrecision(3))} ms` : `${Number(seconds.toPrecision(3))} s`;
}

const whole = (value) => (value === null || value === undefined ? "none" : value.toLocaleString("en"));
const ratio = (part, all) => (all > 0 ? part / all : null);
const tenantName = (name) => (name === "" ? "(without a key)" : name);
const last = (values) => values.at(-1) ?? null;
const highest = (values) => Math.max(0, ...values.filter((value) => value !== null));

// --- the parts of the page -----------------------------------------------------------------------------------------

const tiles = new Map();
for (const [key, title] of [["state", "State"], ["tokens", "Tokens/s"], ["running", "Running"], ["waiting", "Waiting"], ["kv", "KV in use"],
  ["first", "TTFT, median"], ["gap", "Gap, median"], ["memory", "Process, resident"]]) {
  const value = make("dd", { id: `tile-${key}` }, "…");
  tiles.set(key, value);
  $("tiles").append(make("div", {}, make("dt", {}, title), value));
}

const tokens = new LineChart("Tokens per second", ["generated", "read from prompts"]);
const requests = new LineChart("Requests", ["running", "waiting"]);
const first = new BarChart("Time to first token", "Up to");
const gaps = new BarChart("Time between tokens", "Up to");
const kv = new LineChart("KV blocks in use", ["share in use"], { format: percent, most: 1 });
const hits = new LineChart("Prompt tokens found in the prefix cache", ["share found"], { format: percent, most: 1 });
const memory = new LineChart("Memory", ["reserved on the device", "touched of it", "process, resident"], { format: bytes, isBytes: true });
$("work-charts").append(tokens.element, requests.element);
$("latency-charts").append(first.element, gaps.element);
$("kv-charts").append(kv.element, hits.element, memory.element);

const models = new LiveTable("Models", [["Model"], ["State"], ["Running", "number"], ["Waiting", "number"], ["Prompt tokens", "number"],
  ["Generated tokens", "number"], ["Found in cache", "number"], ["Ended", "number"], ["Failed", "number"], ["Preemptions", "number"],
  ["Restarts", "number"], ["Note", "text"]], "No model is served.");
const tiers = new LiveTable("Memory by tier", [["Model"], ["Device: reserved", "number"], ["Device: touched", "number"], ["Device: granted", "number"], ["Device: needed", "number"],
  ["Device: KV blocks", "number"], ["Host: KV", "number"], ["Host: weights", "number"], ["Disk: KV", "number"], ["Disk: weights", "number"]], "No model is served.");
const tenants = new LiveTable("Tenants", [["Tenant"], ["Model"], ["Running", "number"], ["Waiting", "number"], ["Prompt tokens", "number"],
  ["Of them cached", "number"], ["Generated tokens", "number"], ["Ended", "text"]], "No tenant has asked for anything yet.");
const faults = new LiveTable("Faults", [["Last seen"], ["Level"], ["Times", "number"], ["Message", "text"]], "Nothing has gone wrong since the start.");
$("model-table").append(models.element);
$("memory-table").append(tiers.element);
$("tenant-table").append(tenants.element);
$("fault-table").append(faults.element);
const leftOut = make("p", { class: "hint" });
$("tenant-table").append(leftOut);

// --- what is shown -------------------------------------------------------------------------------------------------

function showLines(chart, rows, series, now, summary) {
  const to = rows.at(-1).at;
  chart.show({ at: rows.map((row) => row.at), from: to - 60_000 * minutes, to, series, now, summary: `${now}. ${summary}`, asOf: timeOfDay(to) });
}

function showDistribution(chart, rows, which) {
  const bounds = feed.bounds[which];
  const counts = feed.distribution(rows, which);
  const all = counts.reduce((sum, count) => sum + count, 0);
  const [middle, high, highest] = [0.5, 0.95, 0.99].map((share) => duration(quantile(bounds, counts, share)));
  const now = all === 0 ? "none in this time" : `median ${middle}, p95 ${high}, p99 ${highest}`;
  // Buckets that nobody fell into at both ends are left out.
  const used = counts.map((count, i) => (count > 0 ? i : -1)).filter((i) => i >= 0);
  const from = Math.max(0, (used[0] ?? 0) - 1);
  const to = Math.min(counts.length, Math.max((used.at(-1) ?? 7) + 2, from + 8));
  const names = counts.map((_, i) => (i < bounds.length ? duration(bounds[i]) : "more"));
  chart.show({ names: names.slice(from, to), counts: counts.slice(from, to), now, summary: `${whole(all)} in the last ${spanName()}: ${now}`,
    asOf: timeOfDay(rows.at(-1).at) });
}

function spanName() {
  return minutes === 60 ? "hour" : `${minutes} minutes`;
}

function showCharts() {
  const rows = feed.rows(minutes);
  if (rows.length === 0 || document.hidden) return;
  const span = spanName();
  const generated = feed.rates(rows, "generation_tokens");
  const read = feed.rates(rows, "prompt_tokens");
  showLines(tokens, rows, [generated, read], `${readable(last(generated))} generated`,
    `In the last ${span} at most ${readable(highest(generated))} generated and ${readable(highest(read))} read per second`);
  const running = feed.values(rows, "requests_running");
  const waiting = feed.values(rows, "requests_waiting");
  showLines(requests, rows, [running, waiting], `${whole(last(running))} running, ${whole(last(waiting))} waiting`,
    `In the last ${span} at most ${whole(highest(running))} running and ${whole(highest(waiting))} waiting`);
  showDistribution(first, rows, "first");
  showDistribution(gaps, rows, "gaps");
  const total = feed.values(rows, "kv_blocks_total");
  const shares = feed.values(rows, "kv_blocks_used").map((used, i) => ratio(used, total[i]));
  showLines(kv, rows, [shares], percent(last(shares)), `In the last ${span} at most ${percent(highest(shares))}`);
  const asked = feed.rates(rows, "prefix_cache_queries");
  const found = feed.rates(rows, "prefix_cache_hits").map((hit, i) => (hit === null ? null : ratio(hit, asked[i])));
  const known = found.filter((share) => share !== null);
  showLines(hits, rows, [found], known.length === 0 ? "nothing was asked" : percent(known.at(-1)), `Shares of the last ${span}, while prompts came in`);
  const reserved = feed.values(rows, "device_memory_reserved_bytes");
  const touched = feed.values(rows, "device_memory_touched_bytes");
  const resident = feed.values(rows, "resident_bytes");
  showLines(memory, rows, [reserved, touched, resident], `${bytes(last(reserved))} reserved, ${bytes(last(touched))} of it touched`,
    `The process has ${bytes(last(resident))} resident. In the last ${span} at most ${bytes(highest(touched))} touched and ${bytes(highest(resident))} resident`);
  showTiles(rows, generated, shares);
}

function showTiles(rows, generated, shares) {
  const at = (column) => rows.at(-1).values[feed.columns.get(column)];
  const median = (which) => duration(quantile(feed.bounds[which], feed.distribution(rows, which), 0.5));
  const texts = { tokens: readable(last(generated)), running: whole(at("requests_running")), waiting: whole(at("requests_waiting")),
    kv: percent(last(shares)), first: median("first"), gap: median("gaps"), memory: bytes(at("resident_bytes")) };
  if (feed.sample !== null) texts.state = feed.sample.state;
  for (const [key, text] of Object.entries(texts)) if (tiles.get(key).textContent !== text) tiles.get(key).textContent = text;
}

function showTables() {
  const sample = feed.sample;
  if (sample === null) return;
  models.show(sample.models.map((one) => {
    const ended = one.finished === undefined ? undefined : one.finished.stop + one.finished.length + one.finished.abort;
    const note = [one.detail, one.pinned ? "pinned" : "", one.requests_for_load > 0 ? `${one.requests_for_load} wait for it to be loaded` : ""];
    return [one.model, [one.model, one.state, whole(one.requests_running), whole(one.requests_waiting), whole(one.prompt_tokens),
      whole(one.generation_tokens), percent(ratio(one.prefix_cache_hits, one.prefix_cache_queries)), whole(ended), whole(one.finished?.error),
      whole(one.preemptions), whole(one.executor_restarts), note.filter((text) => text !== "").join("; ")]];
  }));
  tiers.show(sample.models.map((one) => [one.model, [one.model, bytes(one.device_memory_reserved_bytes), bytes(one.device_memory_touched_bytes), one.granted_bytes > 0 ? bytes(one.granted_bytes) : "all",
    one.need_bytes > 0 ? bytes(one.need_bytes) : "unknown", `${whole(one.kv_blocks_used)} of ${whole(one.kv_blocks_total)}`,
    blocksOf(one, one.kv_host_blocks), bytes(one.streamed?.host_bytes ?? 0), blocksOf(one, one.kv_disk_blocks), bytes(one.streamed?.disk_bytes ?? 0)]]));
  showStreams(sample.models.filter((one) => one.streamed !== undefined));
  tenants.show(sample.tenants.map((one) => [`${one.tenant}\n${one.model}`, [tenantName(one.tenant), one.model, whole(one.requests_running),
    whole(one.requests_waiting), whole(one.prompt_tokens), whole(one.cached_prompt_tokens), whole(one.generation_tokens),
    Object.entries(one.finished).map(([reason, count]) => `${reason} ${whole(count)}`).join(", ")]]));
  const missing = [sample.models_left_out > 0 ? `${whole(sample.models_left_out)} more models` : "",
    sample.tenants_left_out > 0 ? `${whole(sample.tenants_left_out)} more pairs of a tenant and a model` : ""].filter((text) => text !== "");
  leftOut.textContent = missing.length === 0 ? "" : `Not shown: ${missing.join(", ")}.`;
}

function blocksOf(model, blocks) {
  return model.kv_tiers ? `${whole(blocks)} blocks, ${bytes(blocks * model.kv_block_bytes)}` : "off";
}

const timelines = new Map(); // model -> its chart

/** The last step of each model that streams its weights. */
function showStreams(streaming) {
  $("no-streams").hidden = streaming.length > 0;
  for (const [model, chart] of timelines) {
    if (streaming.some((one) => one.model === model)) continue;
    chart.element.remove();
    timelines.delete(model);
  }
  for (const { model, streamed } of streaming) {
    if (!timelines.has(model)) {
      timelines.set(model, new TimelineChart(`The last step of ${model}`));
      timelines.get(model).element.classList.add("wide");
      $("stream-charts").append(timelines.get(model).element);
    }
    const begin = Math.min(0, ...streamed.spans.map((span) => span[2])); // fetching ahead begins before the step
    const lane = (what, name) => ({ name, spans: streamed.spans.filter((span) => span[0] === what).map(([, layer, from, to]) =>
      ({ from: (from - begin) / 1000, to: (to - begin) / 1000, name: `layer ${layer}` })) });
    const moved = `${bytes(streamed.host_read_bytes)} from the host and ${bytes(streamed.disk_read_bytes)} from disk since it was loaded`;
    const now = streamed.step_s === 0 ? "no step yet" : `${duration(streamed.step_s)}; waited ${duration(streamed.waited_s)} in all`;
    timelines.get(model).show({ lanes: [lane("compute", "computing"), lane("host", "from the host"), lane("disk", "from disk")],
      to: (Math.max(1e6 * streamed.step_s, ...streamed.spans.map((span) => span[3])) - begin) / 1000, now,
      summary: `${now}; ${moved}` });
  }
}

function showFaults() {
  faults.show([...feed.faults].reverse().map((one) => [one.id, [`${new Date(one.at_unix_ms).toLocaleDateString()} ${timeOfDay(one.at_unix_ms)}`,
    one.level === "error" ? "error" : "warning", whole(one.times), one.message]]));
  const newest = feed.faults.filter((one) => one.level === "error").at(-1);
  if (newest === undefined || newest.id === errorsSaid) return;
  if (errorsSaid > 0) announce(`New error: ${newest.message}`);
  errorsSaid = newest.id;
}

// --- wiring --------------------------------------------------------------------------------------------------------

const stateTexts = { connecting: "Connecting", open: "Connected", waiting: "Trying again", locked: "Key needed" };

function notify(text, action, onaction) {
  $("notice").hidden = text === "";
  if ($("notice").firstChild?.textContent === text) return;
  $("notice").replaceChildren(make("span", {}, text), ...(action === undefined ? [] : [button(action, onaction)]));
}

function askForKey() {
  keyDialog(feed.state === "locked" ? feed.detail : "", (key, keep) => {
    writeKey(key, keep);
    feed.useKey(key);
  });
}

feed.addEventListener("state", () => {
  $("state").dataset.state = feed.state;
  $("state-text").textContent = stateTexts[feed.state];
  if (feed.state === "waiting") notify(`${feed.detail} The figures below are the last ones. Trying again.`, "Try now", () => feed.retryNow());
  else if (feed.state === "locked") notify(feed.detail || "The dashboard needs the key of an administrator.", "Enter a key", askForKey);
  else if (feed.state === "open") notify("");
  if (feed.state === "locked") askForKey();
});
feed.addEventListener("history", () => {
  errorsSaid = 0;
  showCharts();
  showFaults();
});
feed.addEventListener("sample", () => {
  showCharts();
  showTables();
});
feed.addEventListener("faults", showFaults);
document.addEventListener("visibilitychange", showCharts);
$("open-key").addEventListener("click", askForKey);
$("window").addEventListener("change", () => {
  minutes = Number($("window").value);
  showCharts();
});
feed.start();
