// Goes on with an answer that was cut: the tokens of the chat and of the answer so far are a prompt for /v1/completions,
// since a chat template would close the answer and begin another.
import { messagesOf, samplingOf } from "./settings.js";
import { eventsOf } from "./sse.js";

/**
 * Asks for what comes after the `text` of an answer; `thought` is what the model thought before, `nodes` are those in
 * front. The events are those of a turn of the socket (see turns.js). Returns a function that ends it.
 */
export function continueAnswer(connection, asked, onevent) {
  const control = new AbortController();
  run(connection, asked, onevent, control.signal).catch((error) => {
    if (!control.signal.aborted) onevent(error instanceof Refusal ? { type: "error", error: { message: error.message } } : { type: "page.lost" });
  });
  return () => control.abort();
}

class Refusal extends Error {}

async function tokensOf(connection, body) {
  const reply = await connection.ask("tokenize", body);
  if (reply.body === undefined) throw reply.status === 0 ? new Error(reply.message) : new Refusal(reply.message);
  return reply.body;
}

/** A thought as it stands in front of an answer; some chat templates have begun it already. */
async function thoughtOf(connection, tokens, thought, model) {
  const end = await connection.ask("detokenize", { model, tokens: tokens.slice(-8) });
  const begun = end.body?.prompt?.trimEnd().endsWith("<think>") === true;
  return `${begun ? "" : "<think>\n"}${thought.trim()}\n</think>\n\n`;
}

async function run(connection, { settings, nodes, thought, text, model }, onevent, signal) {
  const chat = await tokensOf(connection, { model, messages: messagesOf(settings, nodes), tools: settings.tools });
  const before = thought ? await thoughtOf(connection, chat.tokens, thought, model) : "";
  const begun = await tokensOf(connection, { model, prompt: before + text, add_special_tokens: false });
  const prompt = [...chat.tokens, ...begun.tokens];
  const left = chat.max_model_len - prompt.length;
  if (left < 1) throw new Refusal(`the context of ${chat.max_model_len} tokens is full`);
  const most = Math.min(settings.max_output_tokens ?? left, left);
  const reply = await connection.stream("v1/completions", { ...samplingOf(settings), model, prompt, max_tokens: most, stream: true,
    stream_options: { include_usage: true, continuous_usage_stats: true } }, signal);
  if (!reply.ok) throw new Refusal((await reply.json().catch(() => null))?.error?.message ?? `status ${reply.status}`);
  let reason = null;
  let usage = null;
  for await (const event of eventsOf(reply.body)) {
    if (event.error !== undefined) throw new Refusal(event.error.message ?? "unknown error");
    const choice = event.choices?.[0];
    if (event.usage) usage = { input_tokens: event.usage.prompt_tokens, output_tokens: event.usage.completion_tokens, total_tokens: event.usage.total_tokens };
    reason = choice?.finish_reason ?? reason;
    if (choice?.text) onevent({ type: "response.output_text.delta", delta: choice.text, usage });
  }
  if (reason === null) throw new Error("the stream ended early");
  onevent({ type: reason === "length" ? "response.incomplete" : "response.completed", response: { usage } });
}
