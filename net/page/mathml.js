// Formulas as MathML elements, which browsers set by themselves.
import { texTree } from "./tex.js";

const namespace = "http://www.w3.org/1998/Math/MathML";

function elementOf([tag, attributes, children]) {
  const element = document.createElementNS(namespace, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.map((child) => (typeof child === "string" ? child : elementOf(child))));
  return element;
}

/** A formula as an element; null where it is one that tex.js does not know. */
export function formulaNode(tex, display) {
  const tree = texTree(tex, display);
  if (tree === null) return null;
  const element = elementOf(tree);
  element.setAttribute("alttext", tex);
  return element;
}
