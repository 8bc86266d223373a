// The field that a message is written in, with its buttons and the files that go with it.
import { Attachments } from "./attachments.js";

export class Composer {
  #form = document.getElementById("composer");
  #field = document.getElementById("prompt");
  #send = document.getElementById("send");
  #stop = document.getElementById("stop");
  #attachments;
  #running = false;

  /** `onsend(text, written)` takes a message and the part of it that is no file; `onstop()` ends the answer that is shown; `onfault(text)` says what failed. */
  constructor({ onsend, onstop, onfault }) {
    this.#attachments = new Attachments(onfault);
    const submit = () => {
      const written = this.#field.value;
      if (this.#running || (written.trim() === "" && this.#attachments.empty)) return;
      onsend(this.#attachments.take(written), written);
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
      if (event.key !== "Escape" || !this.#running || document.querySelector("dialog[open]") !== null) return;
      onstop();
      this.focus();
    });
    this.#takeFiles();
  }

  /** Files come by the button, by dropping them on the page, and by pasting. */
  #takeFiles() {
    const chooser = document.getElementById("files");
    document.getElementById("attach").addEventListener("click", () => chooser.click());
    const take = async (files) => {
      await this.#attachments.add(files);
      this.focus();
    };
    chooser.addEventListener("change", async () => {
      await take([...chooser.files]);
      chooser.value = "";
    });
    const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
    addEventListener("dragover", (event) => hasFiles(event) && event.preventDefault());
    addEventListener("drop", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      take([...event.dataTransfer.files]);
    });
    this.#field.addEventListener("paste", (event) => {
      if (event.clipboardData.files.length === 0) return;
      event.preventDefault();
      take([...event.clipboardData.files]);
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
