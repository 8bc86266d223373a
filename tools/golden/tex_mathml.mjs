#!/usr/bin/env node
// Writes what Temml makes of formulas, for tests/page/formulas.json: npm install temml@0.13.5, then
// node tools/golden/tex_mathml.mjs tests/page/formulas.json. The formulas are the keys of that file.
//
// Only what decides how a formula reads is kept: its text and which parts are scripts, fractions, roots and cells.
// Left out are formulas for which Temml chooses other characters or elements for the same sight.
import { readFileSync, writeFileSync } from "node:fs";
import temml from "temml";

const shaping = new Set("mfrac msqrt mroot msub msup msubsup munder mover munderover mtable mtr mtd".split(" "));

function treeOf(xml) {
  const root = { tag: "mrow", children: [] };
  const open = [root];
  for (const [, close, tag, , empty, text] of xml.matchAll(/<(\/?)([a-z]+)((?:[^>"]|"[^"]*")*?)(\/?)>|([^<]+)/g)) {
    if (text !== undefined) open.at(-1).children.push(text.replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&"));
    else if (close) open.pop();
    else {
      const node = { tag, children: [] };
      open.at(-1).children.push(node);
      if (!empty) open.push(node);
    }
  }
  return root;
}

function outline(node) {
  if (typeof node === "string") return node.replace(/[\s\u2061-\u2064\u200b]/g, "");
  if (node.tag === "mspace") return "";
  const inner = node.children.map(outline);
  return shaping.has(node.tag) ? `${node.tag}(${inner.join(["mtd", "msqrt"].includes(node.tag) ? "" : " ")})` : inner.join("");
}

const file = process.argv[2];
const formulas = Object.keys(JSON.parse(readFileSync(file, "utf8")));
const made = formulas.map((tex) => [tex, outline(treeOf(temml.renderToString(tex, { displayMode: true, throwOnError: true })))]);
writeFileSync(file, `{\n${made.map((pair) => pair.map((one) => JSON.stringify(one)).join(": ")).join(",\n")}\n}\n`);
