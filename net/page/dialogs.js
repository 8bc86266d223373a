// The dialogs of the chat page: settings, code to copy, what can be done with a chat, help.
import { open } from "./dialog.js";
import { announce, button, copyButton, make } from "./dom.js";
import { fields, readField, toolsExample } from "./settings.js";
import { curlSnippet, javascriptSnippet, pythonSnippet } from "./snippets.js";

// --- settings ------------------------------------------------------------------------------------------------

function textOf(kind, value) {
  if (value === undefined) return "";
  if (kind === "lines") return value.join("\n");
  if (kind === "json") return JSON.stringify(value, null, 2);
  return String(value);
}

function control([key, , kind], value, models) {
  const id = `set-${key}`;
  if (kind === "check") {
    const box = make("input", { id, type: "checkbox" });
    box.checked = value === true;
    return box;
  }
  if (kind === "model") {
    const served = models.map((model) => model.id);
    if (value !== undefined && !served.includes(value)) served.push(value);
    const list = make("select", { id }, ...served.map((name) => make("option", { value: name }, name)));
    if (value !== undefined) list.value = value;
    return list;
  }
  const field = kind === "number" ? make("input", { id, type: "text", inputmode: "decimal", autocomplete: "off", placeholder: "server's default" })
    : make("textarea", { id, rows: kind === "text" ? 4 : 2, spellcheck: kind === "text" ? "true" : "false", class: kind === "json" ? "mono" : null,
      placeholder: kind === "json" ? toolsExample : null });
  field.value = textOf(kind, value);
  return field;
}

/** `onsave(title, settings)` takes what was changed; `onkey()` asks for another key. */
export function settingsDialog(conversation, models, { onsave, onkey }) {
  const controls = new Map();
  const fault = make("p", { class: "fault", role: "alert" });
  const title = make("input", { id: "set-title", type: "text", autocomplete: "off" });
  title.value = conversation.title;
  const rows = fields.map((field) => {
    const [key, label, kind, hint] = field;
    const input = control(field, conversation.settings[key], models);
    controls.set(key, input);
    if (hint) input.setAttribute("aria-describedby", `hint-${key}`);
    const note = hint ? make("p", { id: `hint-${key}`, class: "hint" }, hint) : null;
    if (kind === "check") return make("div", { class: "row wide" }, make("label", { class: "check", for: input.id }, input, ` ${label}`), note);
    return make("div", { class: kind === "number" ? "row" : "row wide" }, make("label", { for: input.id }, label), input, note);
  });
  const save = () => {
    const settings = {};
    for (const field of fields) {
      const [key, , kind] = field;
      const input = controls.get(key);
      try {
        const value = kind === "check" ? input.checked || undefined : kind === "model" ? input.value || undefined : readField(field, input.value);
        if (value !== undefined) settings[key] = value;
      } catch (error) {
        fault.textContent = error.message;
        input.setAttribute("aria-invalid", "true");
        return input.focus();
      }
    }
    onsave(title.value.trim() || conversation.title, settings);
    dialog.close();
  };
  const form = make("form", { class: "settings", onsubmit: (event) => {
    event.preventDefault();
    save();
  } },
    make("div", { class: "row wide" }, make("label", { for: "set-title" }, "Title of this chat"), title), ...rows,
    make("p", { class: "hint row wide" }, "New chats begin with the settings that were saved last."), make("button", { type: "submit", hidden: true }));
  const dialog = open("Settings", form, [
    fault,
    button("Key", () => {
      dialog.close();
      onkey();
    }),
    button("Cancel", () => dialog.close()),
    button("Save", save, { class: "primary" }),
  ]);
}

// --- code ----------------------------------------------------------------------------------------------------

const languages = { curl: curlSnippet, Python: pythonSnippet, JavaScript: javascriptSnippet };

/** The request of a conversation as a program. */
export function snippetDialog(base, request, needsKey) {
  let text = "";
  const code = make("code");
  const choices = Object.keys(languages).map((name) => {
    const input = make("input", { type: "radio", name: "language", id: `as-${name}`, onchange: () => show(name) });
    input.checked = name === "curl";
    return make("label", { class: "choice", for: input.id }, input, name);
  });
  const show = (name) => {
    text = languages[name](base, request, needsKey);
    code.textContent = text;
  };
  show("curl");
  const body = make("div", {},
    make("fieldset", { class: "choices" }, make("legend", { class: "unseen" }, "Language"), ...choices),
    make("pre", { class: "snippet", tabindex: "0", role: "group", "aria-label": "Program" }, code));
  const dialog = open("This chat as code", body, [copyButton(() => text, "Copy", { class: "primary" }), button("Close", () => {
    dialog.close();
    announce("");
  })]);
}

// --- one chat, help ------------------------------------------------------------------------------------------

/** `onrename(title)`, `onexport("md" or "json")`, `onremove()`. */
export function chatDialog(conversation, { onrename, onexport, onremove }) {
  const title = make("input", { id: "chat-title", type: "text", autocomplete: "off" });
  title.value = conversation.title;
  const rename = () => {
    dialog.close();
    if (title.value.trim() !== "" && title.value.trim() !== conversation.title) onrename(title.value.trim());
  };
  const leave = (next) => () => {
    dialog.close();
    next();
  };
  const form = make("form", { class: "chat-options", onsubmit: (event) => {
    event.preventDefault();
    rename();
  } },
    make("label", { for: "chat-title" }, "Title"), title,
    make("div", { class: "row-of-buttons" }, button("Export as Markdown", () => onexport("md"), { class: "quiet framed" }),
      button("Export as JSON", () => onexport("json"), { class: "quiet framed" }), button("Delete", leave(onremove), { class: "quiet framed risky" })));
  const dialog = open("This chat", form, [button("Cancel", () => dialog.close()), button("Rename", rename, { class: "primary" })]);
  title.select();
}

export function helpDialog(base) {
  const link = (path, text) => make("a", { href: path, target: "_blank", rel: "noopener" }, text);
  const entry = (term, ...text) => [make("dt", {}, term), make("dd", {}, ...text)];
  const body = make("dl", { class: "help" },
    ...entry("Keys", "Enter sends, Shift+Enter begins a new line, Escape stops the answer."),
    ...entry("Files", "Text files that are attached, dropped or pasted go in front of the message, 256 KiB each."),
    ...entry("Programs", "OpenAI clients use the base URL ", make("code", {}, base), ". The button Code shows this chat as a program; the ", link("routes", "routes of this server"),
      " list all that can be asked."),
    ...entry("Dashboard", "Administrators find it at the address that the key ", make("code", {}, "server.admin_listen"), " of the configuration gives; this address has the ",
      link("metrics", "metrics"), " and the ", link("v1/models", "models"), "."),
    ...entry("Documentation", "Guides are among the ", link("routes", "routes"), "; ", make("code", {}, "twilld --print-reference"), " prints every key."),
    ...entry("Privacy", "Chats stay in this browser's storage and are sent to this server alone, which stores an answer until this browser has all of it."));
  const dialog = open("Help", body, [button("Close", () => dialog.close(), { class: "primary" })]);
}
