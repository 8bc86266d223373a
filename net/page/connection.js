// The socket to /v1/responses. Each turn has a lane (`stream_id`) of its own.
//
// Events of this object: "state" (see link.js), "models", "fault" (an error that names no turn).
import { Link } from "./link.js";

export const lastEvents = ["response.completed", "response.incomplete", "response.failed", "error"];

export class Connection extends Link {
  models = [];
  #turns = new Map(); // lane -> function(event)

  constructor(key) {
    super("v1/responses", key);
  }

  /** Sends a request; its events go to `onevent` until one ends it. False when the socket is not open. */
  begin(lane, request, onevent) {
    if (this.state !== "open") return false;
    this.#turns.set(lane, onevent);
    this.send(JSON.stringify({ type: "response.create", stream_id: lane, ...request }));
    return true;
  }

  /** Ends a request; its last event, with what it used, still comes. */
  cancel(lane) {
    if (this.state === "open") this.send(JSON.stringify({ type: "response.cancel", stream_id: lane }));
  }

  onStart() {
    this.probe();
  }

  /** Takes in the models that are served. */
  async probe() {
    const reply = await this.ask("v1/models");
    if (reply.body === undefined) return reply;
    this.models = reply.body.data ?? [];
    this.dispatchEvent(new Event("models"));
    return null;
  }

  onMessage(text) {
    let event;
    try {
      event = JSON.parse(text);
    } catch {
      return;
    }
    const turn = this.#turns.get(event.stream_id);
    if (turn === undefined) {
      // A turn may have ended by itself before it was cancelled: its lane is unknown here, and nobody waits for it.
      if (event.type === "error" && event.stream_id === undefined)
        this.dispatchEvent(new CustomEvent("fault", { detail: event.error?.message ?? "unknown error" }));
      return;
    }
    if (lastEvents.includes(event.type)) this.#turns.delete(event.stream_id);
    turn(event);
  }

  onLost(event) {
    const type = event.code === 1009 ? "page.too_large" : "page.lost";
    for (const [lane, turn] of [...this.#turns]) {
      this.#turns.delete(lane);
      turn({ type });
    }
  }
}
