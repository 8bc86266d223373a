// What a conversation is asked with: the fields of its dialog, and the request that they make.

/** key of the request, label, kind, hint, bounds */
export const fields = [
  ["model", "Model", "model"],
  ["instructions", "System prompt", "text", "What the model should know and how it should answer."],
  ["temperature", "Temperature", "number", "0 takes the likeliest token; higher is more varied.", { min: 0, max: 2, step: 0.1 }],
  ["top_p", "Top p", "number", "Keeps the likeliest tokens that reach this probability.", { min: 0, max: 1, step: 0.05 }],
  ["top_k", "Top k", "number", "Keeps this many of the likeliest tokens.", { min: -1, step: 1 }],
  ["min_p", "Min p", "number", "Drops tokens below this share of the likeliest.", { min: 0, max: 1, step: 0.01 }],
  ["repetition_penalty", "Repetition penalty", "number", "Above 1 makes used tokens less likely.", { min: 0, max: 2, step: 0.05 }],
  ["max_output_tokens", "Longest answer, tokens", "number", "", { min: 1, step: 1 }],
  ["seed", "Seed", "number", "The same seed and question give the same answer.", { step: 1 }],
  ["stop", "Stop at", "lines", "One text in each line. The answer ends before it."],
  ["tools", "Tools", "json", "A JSON list of functions that the model may call."],
  ["logprobs", "Probabilities of tokens", "check", "Shows how likely each token of an answer was, and what else it could have been."],
];

export const toolsExample = `[{"type": "function", "name": "get_weather", "description": "The weather in a city",
  "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}]`;

/** What a field's text means; throws an Error that says what is wrong. */
export function readField([key, label, kind, , bounds], text) {
  const trimmed = text.trim();
  if (trimmed === "") return undefined;
  if (kind === "number") {
    const number = Number(trimmed);
    if (!Number.isFinite(number)) throw new Error(`${label} must be a number.`);
    if (bounds?.min !== undefined && number < bounds.min) throw new Error(`${label} must be at least ${bounds.min}.`);
    if (bounds?.max !== undefined && number > bounds.max) throw new Error(`${label} must be at most ${bounds.max}.`);
    if (bounds?.step === 1 && !Number.isInteger(number)) throw new Error(`${label} must be a whole number.`);
    return number;
  }
  if (kind === "lines") return text.split("\n").filter((line) => line !== "");
  if (kind === "json") {
    let value;
    try {
      value = JSON.parse(trimmed);
    } catch (error) {
      throw new Error(`${label} must be JSON: ${error.message}.`);
    }
    if (!Array.isArray(value)) throw new Error(`${label} must be a list: begin with [ and end with ].`);
    return value;
  }
  return text;
}

/** The input items that the nodes of a conversation make. */
function inputOf(nodes) {
  const items = [];
  for (const node of nodes) {
    if (node.role === "tool") {
      items.push({ type: "function_call_output", call_id: node.call_id, output: node.text });
      continue;
    }
    if (node.text !== "" || node.role === "user") items.push({ role: node.role, content: node.text });
    for (const call of node.calls ?? [])
      items.push({ type: "function_call", call_id: call.call_id, name: call.name, arguments: call.arguments });
  }
  return items;
}

/** The same as messages of /v1/chat/completions, the system prompt first. */
export function messagesOf(settings, nodes) {
  const out = settings.instructions ? [{ role: "system", content: settings.instructions }] : [];
  for (const node of nodes) {
    if (node.role === "tool") out.push({ role: "tool", tool_call_id: node.call_id, content: node.text });
    else if (node.role === "user" || !node.calls?.length) out.push({ role: node.role, content: node.text });
    else out.push({ role: "assistant", content: node.text, tool_calls: node.calls.map((call) =>
      ({ id: call.call_id, type: "function", function: { name: call.name, arguments: call.arguments } })) });
  }
  return out;
}

/** What of the settings decides how tokens are drawn. */
export function samplingOf(settings) {
  return Object.fromEntries(["temperature", "top_p", "top_k", "min_p", "repetition_penalty", "seed", "stop"].flatMap((key) =>
    (settings[key] === undefined ? [] : [[key, settings[key]]])));
}

/** The body of a request to /v1/responses that asks for what comes after these nodes. */
export function requestOf(settings, nodes, model) {
  const request = { model: settings.model || model, input: inputOf(nodes), store: false };
  if (request.model === undefined) delete request.model;
  for (const [key] of fields)
    if (!["model", "logprobs"].includes(key) && settings[key] !== undefined) request[key] = settings[key];
  if (settings.logprobs) Object.assign(request, { include: ["message.output_text.logprobs"], top_logprobs: 5 });
  return request;
}
