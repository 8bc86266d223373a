// A conversation's request as a program: what to paste into a shell, Python or JavaScript.

const known = new Set(["model", "input", "store", "instructions", "temperature", "top_p", "max_output_tokens", "tools",
  "include", "top_logprobs"]); // what OpenAI's Python client takes by name

function shellQuote(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** A value as Python writes it. JSON's strings are Python's, but for what lies beyond ASCII's controls. */
export function pythonLiteral(value, indent = "") {
  if (value === null || value === undefined) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value === "number") return String(value);
  if (typeof value === "string") return JSON.stringify(value);
  const inner = `${indent}    `;
  const parts = Array.isArray(value) ? value.map((item) => pythonLiteral(item, inner))
    : Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}: ${pythonLiteral(item, inner)}`);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  const short = `${open}${parts.join(", ")}${close}`;
  if (short.length <= 80 && !short.includes("\n")) return short;
  return `${open}\n${parts.map((part) => `${inner}${part},\n`).join("")}${indent}${close}`;
}

export function curlSnippet(base, request, needsKey) {
  const lines = [`curl ${shellQuote(`${base}v1/responses`)}`, "-H 'Content-Type: application/json'"];
  if (needsKey) lines.push('-H "Authorization: Bearer $TWILL_API_KEY"');
  lines.push(`-d ${shellQuote(JSON.stringify(request, null, 2))}`);
  return `${lines.join(" \\\n  ")}\n`;
}

export function pythonSnippet(base, request, needsKey) {
  const named = Object.entries(request).filter(([key]) => known.has(key));
  const extra = Object.fromEntries(Object.entries(request).filter(([key]) => !known.has(key)));
  const given = named.map(([key, value]) => `    ${key}=${pythonLiteral(value, "    ")},\n`);
  if (Object.keys(extra).length > 0) given.push(`    extra_body=${pythonLiteral(extra, "    ")},\n`);
  return `${needsKey ? "import os\n\n" : ""}from openai import OpenAI  # pip install openai

client = OpenAI(base_url=${JSON.stringify(`${base}v1`)}, api_key=${needsKey ? 'os.environ["TWILL_API_KEY"]' : '"none"'})
events = client.responses.create(
    stream=True,
${given.join("")})
for event in events:
    if event.type == "response.output_text.delta":
        print(event.delta, end="", flush=True)
print()
`;
}

export function javascriptSnippet(base, request, needsKey) {
  const headers = `{ "Content-Type": "application/json"${needsKey ? ", Authorization: `Bearer ${process.env.TWILL_API_KEY}`" : ""} }`;
  return `const reply = await fetch(${JSON.stringify(`${base}v1/responses`)}, {
  method: "POST",
  headers: ${headers},
  body: JSON.stringify(${JSON.stringify(request, null, 2).replaceAll("\n", "\n  ")}),
});
if (!reply.ok) throw new Error((await reply.json()).error.message);
const response = await reply.json();
for (const item of response.output)
  if (item.type === "message") console.log(item.content.map((part) => part.text).join(""));
`;
}
