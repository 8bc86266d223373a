// Light, dark, or as the system is: kept in this browser, and set before the page is painted.
import { make } from "./dom.js";
import { scope } from "./key.js";

const names = { auto: "As the system", light: "Light", dark: "Dark" };

function read() {
  try {
    return localStorage.getItem(`${scope}theme`) ?? "auto";
  } catch {
    return "auto"; // no storage
  }
}

export function applyTheme(theme = read()) {
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

/** A list to choose from, with its label. */
export function themeChoice() {
  const list = make("select", { id: "theme", onchange: () => {
    applyTheme(list.value);
    try {
      localStorage.setItem(`${scope}theme`, list.value);
    } catch {
      // no storage: it holds until the page is loaded anew
    }
  } }, ...Object.entries(names).map(([value, name]) => make("option", { value }, name)));
  list.value = Object.hasOwn(names, read()) ? read() : "auto";
  addEventListener("storage", (event) => {
    if (event.key !== `${scope}theme`) return;
    applyTheme();
    list.value = read();
  });
  return make("p", { class: "theme" }, make("label", { for: "theme" }, "Theme"), list);
}
