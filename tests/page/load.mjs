// Loads modules of the page's folder. They go in as data: addresses, so that node takes them for modules without a package.json.
import { readFileSync } from "node:fs";

const loaded = new Map();

function addressOf(name) {
  if (loaded.has(name)) return loaded.get(name);
  const text = readFileSync(`${process.argv[2]}/${name}`, "utf8").replace(/from "\.\/([\w.]+)"/g, (_, other) => `from "${addressOf(other)}"`);
  const url = `data:text/javascript;base64,${Buffer.from(text).toString("base64")}`;
  loaded.set(name, url);
  return url;
}

export const load = (name) => import(addressOf(name));
