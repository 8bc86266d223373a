// What chat.js loads when an answer needs it, so that the page itself stays small.
export { colourCode } from "./code.js";
export { formulaNode } from "./mathml.js";
