// What all dialogs are, and those that every page has: a question, a key.
import { button, make } from "./dom.js";

/** Shows a dialog, which is built when it opens and leaves when it closes. */
export function open(title, body, buttons) {
  const heading = make("h2", { id: "dialog-title" }, title);
  const dialog = make("dialog", { "aria-labelledby": "dialog-title" }, heading, body, make("div", { class: "dialog-foot" }, ...buttons));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** Asks before something that cannot be undone. */
export function confirmDialog(title, text, action, onconfirm) {
  const dialog = open(title, make("p", {}, text), [
    button("Cancel", () => dialog.close()),
    button(action, () => {
      dialog.close();
      onconfirm();
    }, { class: "danger" }),
  ]);
}

// --- key -----------------------------------------------------------------------------------------------------

/** Asks for a key; `onkey(key, keep)` takes it. */
export function keyDialog(reason, onkey) {
  if (document.querySelector("dialog.key-dialog") !== null) return;
  const field = make("input", { id: "key", type: "password", autocomplete: "off", spellcheck: "false" });
  const keep = make("input", { id: "keep-key", type: "checkbox" });
  const take = () => {
    if (field.value.trim() === "") return field.focus();
    onkey(field.value.trim(), keep.checked);
    dialog.close();
  };
  const form = make("form", { onsubmit: (event) => {
    event.preventDefault();
    take();
  } },
    make("p", {}, reason || "This server answers only those who have a key."),
    make("label", { for: "key" }, "API key"), field,
    make("label", { class: "check", for: "keep-key" }, keep, " Keep it in this browser after the tab is closed"));
  const dialog = open("A key is needed", form, [button("Cancel", () => dialog.close()), button("Use key", take, { class: "primary" })]);
  dialog.classList.add("key-dialog");
  field.focus();
}
