// The key that the user gave, kept until the tab closes, or longer where the user said so.

/** Two servers behind one origin keep apart what they store by the path of their pages. */
export const scope = `twill:${new URL(".", location.href).pathname}:`;

export function readKey() {
  try {
    return sessionStorage.getItem(`${scope}key`) ?? localStorage.getItem(`${scope}key`) ?? "";
  } catch {
    return "";
  }
}

export function writeKey(key, keep) {
  try {
    localStorage.removeItem(`${scope}key`);
    sessionStorage.setItem(`${scope}key`, key);
    if (keep) localStorage.setItem(`${scope}key`, key);
  } catch {
    // no storage: it will be asked for again
  }
}
