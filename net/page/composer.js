// The field that a message is written in, with its buttons.

export class Composer {
  #form = document.getElementById("composer");
  #field = document.getElementById("prompt");
  #send = document.getElementById("send");
  #stop = document.getElementById("stop");
  #running = false;

  /** `onsend(text)` returns whether it took the text; `onstop()` ends the answer that is shown. */
  constructor({ onsend, onstop }) {
    const submit = () => {
      const text = this.#field.value;
      if (this.#running || text.trim() === "" || !onsend(text)) return;
      this.#field.value = "";
      this.#fit();
    };
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      submit();
    });
    this.#field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      submit();
    });
    this.#field.addEventListener("input", () => this.#fit());
    this.#stop.addEventListener("click", onstop);
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.#running && document.querySelector("dialog[open]") === null) onstop();
    });
  }

  /** Shows Stop in place of Send while an answer comes. */
  setRunning(running) {
    if (running === this.#running) return;
    this.#running = running;
    const focused = [this.#send, this.#stop].includes(document.activeElement);
    this.#send.hidden = running;
    this.#stop.hidden = !running;
    if (focused) this.#field.focus();
  }

  focus() {
    this.#field.focus();
  }

  write(text) {
    this.#field.value = text;
    this.#fit();
    this.focus();
  }

  #fit() {
    this.#field.style.height = "auto";
    this.#field.style.height = `${Math.min(this.#field.scrollHeight + 2, innerHeight * 0.4)}px`;
  }
}
