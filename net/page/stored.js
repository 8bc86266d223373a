// Responses that the server stores: reads one on over HTTP, ends it, has it forgotten; one tab at a time fills an answer.
import { lastEvents } from "./connection.js";
import { scope } from "./key.js";
import { firstDelay, longestDelay } from "./link.js";
import { eventsOf } from "./sse.js";

// A browser opens six connections to a server, for all tabs together: some must stay free.
const mostStreams = 3;
let streams = 0;
const queue = []; // functions that begin a stream which waits

async function takeStream() {
  if (streams < mostStreams) ++streams;
  else await new Promise((begin) => queue.push(begin));
}

function leaveStream() {
  if (queue.length > 0) queue.shift()();
  else --streams;
}

/**
 * Reads the events of a response with numbers above `seen`, over as many tries as that takes. `onevent` also gets
 * `page.reading` when the server answers, `page.lost` while it does not, and at the end `page.gone` when it has no such
 * response, or an `error`. Returns a function that ends the reading.
 */
export function readOn(connection, id, seen, onevent) {
  const control = new AbortController();
  queueMicrotask(() => follow(connection, id, seen, onevent, control.signal)); // nothing is told before the caller has the function
  return () => control.abort();
}

async function follow(connection, id, seen, onevent, signal) {
  let delay = firstDelay;
  while (true) {
    await opening(connection, signal, () => onevent({ type: "page.lost" }));
    await takeStream();
    const read = signal.aborted ? {} : await readOnce(connection, id, seen, (event) => {
      seen = event.sequence_number ?? seen;
      delay = firstDelay;
      onevent(event);
    }, signal);
    leaveStream();
    if (signal.aborted || read.over) return;
    if (read.status === 404) return onevent({ type: "page.gone" });
    if (read.status === 401) connection.lock("The server does not know this key.");
    else if (read.status === 403) connection.lock(`The server says: ${read.message}.`);
    else if (read.status < 500 && read.status !== 429) return onevent({ type: "error", error: { message: read.message } });
    onevent({ type: "page.lost" });
    if (connection.state !== "open") continue;
    await new Promise((done) => setTimeout(done, delay * (0.75 + Math.random() / 2)));
    delay = Math.min(2 * delay, longestDelay);
  }
}

/** Waits until the connection is open, which says that the server answers and takes the key. */
function opening(connection, signal, onlost) {
  return new Promise((done) => {
    const look = () => {
      if (connection.state !== "open" && !signal.aborted) return connection.state === "connecting" || onlost();
      connection.removeEventListener("state", look);
      signal.removeEventListener("abort", look);
      done();
    };
    connection.addEventListener("state", look);
    signal.addEventListener("abort", look);
    look();
  });
}

/** One try: {over} after the last event, {status, message} of a refusal. A lost socket ends it too, which is noticed sooner. */
async function readOnce(connection, id, seen, take, signal) {
  const control = new AbortController();
  const look = () => (signal.aborted || connection.state !== "open") && control.abort();
  connection.addEventListener("state", look);
  signal.addEventListener("abort", look);
  try {
    const reply = await connection.stream(`v1/responses/${id}?stream=true${seen < 0 ? "" : `&starting_after=${seen}`}`, undefined, control.signal);
    if (!reply.ok) return { status: reply.status, message: (await reply.json().catch(() => null))?.error?.message ?? `status ${reply.status}` };
    take({ type: "page.reading" });
    for await (const event of eventsOf(reply.body)) {
      if (signal.aborted || event.sequence_number === undefined) break; // an error outside of the response: it goes on later
      take(event);
      if (lastEvents.includes(event.type)) return { over: true };
    }
  } catch {
    // broken off, or the server does not answer
  } finally {
    connection.removeEventListener("state", look);
    signal.removeEventListener("abort", look);
    control.abort();
  }
  return {};
}

/** Ends a response: the response, or undefined where the server did not say. */
export async function cancel(connection, id) {
  return (await connection.ask(`v1/responses/${id}/cancel`, {})).body;
}

// --- what the server is to forget ----------------------------------------------------------------------------

const prefix = `${scope}forget:`;
const unkept = new Set(); // where the browser keeps nothing

/** Notes that the server is to forget a response, which ends it too: at the latest when it is reached again. */
export function note(id) {
  try {
    localStorage.setItem(prefix + id, "1");
  } catch {
    unkept.add(id);
  }
}

export async function forget(connection, id) {
  note(id);
  if (connection.state !== "open") return;
  const { body, status } = await connection.ask(`v1/responses/${id}`, undefined, "DELETE");
  if (body === undefined && status !== 404) return;
  unkept.delete(id);
  try {
    localStorage.removeItem(prefix + id);
  } catch {
    // nothing was kept
  }
}

/** Has the server forget all that was noted, also before the page was loaded. */
export function forgetNoted(connection) {
  const ids = [...unkept];
  try {
    for (const key of Object.keys(localStorage)) if (key.startsWith(prefix)) ids.push(key.slice(prefix.length));
  } catch {
    // no storage
  }
  for (const id of ids) forget(connection, id);
}

// --- several tabs --------------------------------------------------------------------------------------------

/**
 * Calls `then` once no other tab fills this answer, and holds others off until the returned function is called. Browsers
 * have locks on https and localhost alone; elsewhere each tab reads for itself, and all save the same.
 */
export function hold(node, then = () => {}) {
  let release;
  const released = new Promise((done) => (release = done));
  const begin = () => {
    then();
    return released;
  };
  if (globalThis.navigator?.locks === undefined) queueMicrotask(then);
  else navigator.locks.request(`${scope}node:${node.id}`, begin).catch(then); // refused where the browser keeps nothing
  return release;
}
