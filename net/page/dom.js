// Builds elements from plain values. Text becomes text nodes and nothing else: no function here, and none that
// uses it, turns a string into markup.

/**
 * An element with attributes, handlers (names that begin with "on") and children (nodes or strings).
 * An attribute whose value is null, undefined or false is left out; `true` gives an empty one.
 */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  // The children first: a browser looks at all of them again for each that comes into an element with dir="auto".
  element.append(...children.filter((child) => child !== null && child !== undefined));
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  return element;
}

export function button(label, onclick, attributes = {}) {
  return make("button", { type: "button", class: "quiet", onclick, ...attributes }, label);
}

/** Copies text, also where the browser keeps its clipboard for secure pages (http, another machine). */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = make("textarea", { class: "unseen", "aria-hidden": "true", tabindex: "-1" });
    field.value = text;
    const focused = document.activeElement;
    (document.querySelector("dialog[open]") ?? document.body).append(field);
    field.select();
    const copied = document.execCommand("copy");
    field.remove();
    focused?.focus();
    return copied;
  }
}

/** A button that copies what `text()` gives, and says so for a moment. */
export function copyButton(text, label = "Copy", attributes = {}) {
  const self = button(label, async () => {
    const copied = await copyText(text());
    self.textContent = copied ? "Copied" : "Not copied";
    announce(copied ? "Copied" : "The browser did not allow copying.");
    setTimeout(() => (self.textContent = label), 1500);
  }, attributes);
  return self;
}

/** Has screen readers say a text, once. */
export function announce(text) {
  const region = document.getElementById("announcer");
  if (region === null) return;
  region.textContent = "";
  setTimeout(() => (region.textContent = text), 50);
}

export function randomId() {
  const bytes = crypto.getRandomValues(new Uint8Array(9));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
