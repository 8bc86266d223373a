// One WebSocket to /v1/responses that comes back by itself. Each turn has a lane (`stream_id`) of its own.
//
// Events of this object: "state" (see `state` and `detail`), "models", "fault" (an error that names no turn).

const firstDelay = 250; // milliseconds between two tries, doubled up to:
const longestDelay = 5000;

/** An address below the page's own, so that a path in front of the server's is kept. */
export function address(path) {
  return new URL(path, document.baseURI);
}

export class Connection extends EventTarget {
  state = "connecting"; // connecting, open, waiting (to try again), locked (a key is needed)
  detail = "";
  models = [];
  #key;
  #socket = null;
  #turns = new Map(); // lane -> function(event)
  #delay = firstDelay;
  #timer = 0;

  constructor(key) {
    super();
    this.#key = key;
    addEventListener("online", () => this.retryNow());
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "visible") this.retryNow();
    });
  }

  get key() {
    return this.#key;
  }

  /** Connects anew with this key. */
  useKey(key) {
    this.#key = key;
    this.#delay = firstDelay;
    this.#dropSocket();
    this.start();
  }

  retryNow() {
    if (this.state !== "waiting") return;
    clearTimeout(this.#timer);
    this.start();
  }

  start() {
    this.#setState("connecting");
    this.#loadModels();
    const url = address("v1/responses");
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    let socket;
    try {
      // The server answers with "realtime"; a browser needs one of those it offered.
      socket = this.#key === "" ? new WebSocket(url)
        : new WebSocket(url, ["realtime", `openai-insecure-api-key.${this.#key}`]);
    } catch {
      this.#setState("locked", "This key holds a character that a browser cannot send with a WebSocket.");
      return;
    }
    this.#socket = socket;
    socket.onopen = () => {
      this.#delay = firstDelay;
      this.#setState("open");
    };
    socket.onmessage = (event) => this.#onMessage(event.data);
    socket.onclose = (event) => {
      if (this.#socket === socket) this.#onClose(event);
    };
  }

  /** Sends a request; its events go to `onevent` until one ends it. False when the socket is not open. */
  begin(lane, request, onevent) {
    if (this.state !== "open") return false;
    this.#turns.set(lane, onevent);
    this.#socket.send(JSON.stringify({ type: "response.create", stream_id: lane, ...request }));
    return true;
  }

  cancel(lane) {
    this.#turns.delete(lane);
    if (this.state === "open") this.#socket.send(JSON.stringify({ type: "response.cancel", stream_id: lane }));
  }

  /** The models that are served, or what keeps them from us: {status, message}. */
  async #loadModels() {
    try {
      const headers = this.#key === "" ? {} : { Authorization: `Bearer ${this.#key}` };
      const reply = await fetch(address("v1/models"), { headers, cache: "no-store" });
      const body = await reply.json();
      if (!reply.ok) return { status: reply.status, message: body.error?.message ?? `status ${reply.status}` };
      this.models = body.data ?? [];
      this.dispatchEvent(new Event("models"));
      return null;
    } catch {
      return { status: 0, message: "The server does not answer." };
    }
  }

  #onMessage(text) {
    let event;
    try {
      event = JSON.parse(text);
    } catch {
      return;
    }
    const turn = this.#turns.get(event.stream_id);
    if (turn === undefined) {
      // A cancelled turn may have ended by itself: its lane is unknown here, and nobody waits for it.
      if (event.type === "error" && event.stream_id === undefined)
        this.dispatchEvent(new CustomEvent("fault", { detail: event.error?.message ?? "unknown error" }));
      return;
    }
    const last = ["response.completed", "response.incomplete", "response.failed", "error"].includes(event.type);
    if (last) this.#turns.delete(event.stream_id);
    turn(event);
  }

  async #onClose(event) {
    const opened = this.state === "open";
    this.#dropSocket();
    const tooLarge = event.code === 1009;
    for (const [lane, turn] of [...this.#turns]) {
      this.#turns.delete(lane);
      turn({ type: tooLarge ? "page.too_large" : "page.lost" });
    }
    if (opened) return this.#wait(event.reason || "The connection was lost.");
    // A browser does not tell why a handshake failed: the list of models does.
    const fault = await this.#loadModels();
    if (this.#socket !== null) return; // begun anew meanwhile
    if (fault?.status === 401) this.#setState("locked", this.#key === "" ? "" : "The server does not know this key.");
    else this.#wait(fault?.message ?? "The server did not accept the connection.");
  }

  #wait(detail) {
    this.#setState("waiting", detail);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.start(), this.#delay * (0.75 + Math.random() / 2));
    this.#delay = Math.min(2 * this.#delay, longestDelay);
  }

  #dropSocket() {
    const socket = this.#socket;
    this.#socket = null;
    clearTimeout(this.#timer);
    socket?.close();
  }

  #setState(state, detail = "") {
    this.state = state;
    this.detail = detail;
    this.dispatchEvent(new Event("state"));
  }
}
