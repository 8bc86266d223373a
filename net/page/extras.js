// What chat.js loads when an answer or a command needs it, so that the page itself stays small.
export { colourCode } from "./code.js";
export { continueAnswer } from "./continue.js";
export { chatDialog, helpDialog, settingsDialog, snippetDialog } from "./dialogs.js";
export { formulaNode } from "./mathml.js";
export { tokenList } from "./tokens.js";
export { download, exportJson, exportMarkdown, fileName, readFile } from "./transfer.js";
