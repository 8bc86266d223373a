// One WebSocket that comes back by itself, with a key where the server asks for one.
//
// Events of this object: "state" (see `state` and `detail`). Who extends it says where it leads and what it means.

export const firstDelay = 250; // milliseconds between two tries, doubled up to:
export const longestDelay = 5000;

/** An address below the page's own, so that a path in front of the server's is kept. */
export function address(path) {
  return new URL(path, document.baseURI);
}

export class Link extends EventTarget {
  state = "connecting"; // connecting, open, waiting (to try again), locked (a key is needed)
  detail = "";
  #path;
  #key;
  #socket = null;
  #delay = firstDelay;
  #timer = 0;

  constructor(path, key) {
    super();
    this.#path = path;
    this.#key = key;
    addEventListener("online", () => this.retryNow());
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "visible") this.retryNow();
    });
  }

  // --- what those who extend it say ---------------------------------------------------------------------------

  /** A try begins. */
  onStart() {}
  onMessage(text) {}
  /** The socket closed. */
  onLost(event) {}
  /** Asks over HTTP why a handshake failed, which a browser does not tell: null, or {status, message}. */
  async probe() {
    return null;
  }

  // ------------------------------------------------------------------------------------------------------------

  get key() {
    return this.#key;
  }

  /** Connects anew with this key. */
  useKey(key) {
    this.#key = key;
    this.#delay = firstDelay;
    const lost = this.#dropSocket();
    this.start();
    if (lost) this.onLost({});
  }

  retryNow() {
    if (this.state !== "waiting") return;
    clearTimeout(this.#timer);
    this.start();
  }

  start() {
    this.#setState("connecting");
    this.onStart();
    const url = address(this.#path);
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
      performance.mark("open"); // for whoever measures how long a page takes to be ready
      this.#setState("open");
    };
    socket.onmessage = (event) => this.onMessage(event.data);
    socket.onclose = (event) => {
      if (this.#socket === socket) this.#onClose(event);
    };
  }

  send(text) {
    this.#socket.send(text);
  }

  /** A reply over HTTP of what is below the page's address; `body` is sent as JSON. */
  stream(path, body, signal, method = body === undefined ? "GET" : "POST") {
    const headers = this.#key === "" ? {} : { Authorization: `Bearer ${this.#key}` };
    if (body === undefined) return fetch(address(path), { method, headers, signal, cache: "no-store" });
    return fetch(address(path), { method, headers: { ...headers, "Content-Type": "application/json" }, body: JSON.stringify(body), signal });
  }

  /** A reply of JSON, or what keeps it from us: {body} or {status, message}. */
  async ask(path, sent, method) {
    try {
      const reply = await this.stream(path, sent, undefined, method);
      const body = await reply.json();
      if (!reply.ok) return { status: reply.status, message: body.error?.message ?? `status ${reply.status}` };
      return { body };
    } catch {
      return { status: 0, message: "The server does not answer." };
    }
  }

  async #onClose(event) {
    const opened = this.state === "open";
    this.#dropSocket();
    this.onLost(event);
    if (opened) return this.#wait(event.reason || "The connection was lost.");
    const fault = await this.probe();
    if (this.#socket !== null) return; // begun anew meanwhile
    if (fault?.status === 401) this.lock(this.#key === "" ? "" : "The server does not know this key.");
    else if (fault?.status === 403) this.lock(`The server says: ${fault.message}.`);
    else this.#wait(fault?.message ?? "The server did not accept the connection.");
  }

  /** Stays closed until there is another key. */
  lock(detail) {
    const lost = this.#dropSocket();
    this.#setState("locked", detail);
    if (lost) this.onLost({});
  }

  #wait(detail) {
    this.#setState("waiting", detail);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.start(), this.#delay * (0.75 + Math.random() / 2));
    this.#delay = Math.min(2 * this.#delay, longestDelay);
  }

  /** Whether there was one. */
  #dropSocket() {
    const socket = this.#socket;
    this.#socket = null;
    clearTimeout(this.#timer);
    socket?.close();
    return socket !== null;
  }

  #setState(state, detail = "") {
    this.state = state;
    this.detail = detail;
    this.dispatchEvent(new Event("state"));
  }
}
