// Stored responses through the unmodified openai package for JavaScript.
//
//   node stored_responses.mjs INDEX_OF_OPENAI URL before         prints what the second run needs
//   node stored_responses.mjs INDEX_OF_OPENAI URL after STATE    once the daemon was killed and started again
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";

const [index, url, part, state] = process.argv.slice(2);
const { default: OpenAI } = await import(index);
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
const asked = { model: "tiny", input: "Tell a story about the sea.", temperature: 1, seed: 5, max_output_tokens: 24 };
const endless = { ...asked, max_output_tokens: 7000, ignore_eos: true };

async function ended(id) {
  for (let tries = 0; tries < 2000; ++tries) {
    const response = await client.responses.retrieve(id);
    if (response.status !== "queued" && response.status !== "in_progress") return response;
    await sleep(20);
  }
  assert.fail(`${id} has not ended`);
}

async function all(events) {
  const read = [];
  for await (const event of events) read.push(event);
  return read;
}

/// The first events of a stream, which is then broken off.
async function some(events, wanted) {
  const read = [];
  for await (const event of events) {
    read.push(event);
    if (read.length === wanted) break;
  }
  return read;
}

async function isGone(id) {
  await assert.rejects(client.responses.retrieve(id), OpenAI.NotFoundError);
  await assert.rejects(client.responses.cancel(id), OpenAI.NotFoundError);
  await assert.rejects(client.responses.delete(id), OpenAI.NotFoundError);
}

async function before() {
  const whole = await client.responses.create(asked);
  assert.deepEqual(await client.responses.retrieve(whole.id), whole);

  const begun = await client.responses.create({ ...asked, background: true });
  assert.ok(["queued", "in_progress"].includes(begun.status));
  const done = await ended(begun.id);
  assert.equal(done.output_text, whole.output_text);

  const first = await some(await client.responses.create({ ...asked, background: true, stream: true }), 7);
  const { id } = first[0].response;
  const after = first.at(-1).sequence_number;
  const rest = await all(await client.responses.retrieve(id, { stream: true, starting_after: after }));
  const events = [...first, ...rest];
  assert.deepEqual(events.map((event) => event.sequence_number), events.map((_, i) => i));
  const text = events.filter((event) => event.type === "response.output_text.delta").map((event) => event.delta).join("");
  assert.equal(text, whole.output_text);

  const items = await all(client.responses.inputItems.list(whole.id));
  assert.deepEqual(items.map((item) => item.content[0].text), [asked.input]);

  const running = await client.responses.create({ ...endless, background: true });
  assert.equal((await client.responses.cancel(running.id)).status, "cancelled");
  await client.responses.delete(running.id);
  await isGone(running.id);

  const goingOn = await some(await client.responses.create({ ...endless, background: true, stream: true }), 20);
  const turn = { ...asked, input: "And then?", temperature: 0, previous_response_id: whole.id };
  const answer = await client.responses.create(turn);
  return { whole, turn, answer: answer.output_text, gone: running.id, goingOn };
}

async function after({ whole, turn, answer, gone, goingOn }) {
  const read = await client.responses.retrieve(whole.id);
  delete whole.output_text, delete read.output_text;
  assert.deepEqual(read, whole);
  assert.equal((await client.responses.create(turn)).output_text, answer);
  await isGone(gone);

  const { id } = goingOn[0].response;
  const again = await some(await client.responses.retrieve(id, { stream: true }), 60);
  assert.deepEqual(JSON.parse(JSON.stringify(again.slice(0, goingOn.length))), goingOn);
  assert.deepEqual(again.map((event) => event.sequence_number), again.map((_, i) => i));
  const rest = await some(await client.responses.retrieve(id, { stream: true, starting_after: 39 }), 20);
  assert.deepEqual(rest, again.slice(40));
  assert.equal((await client.responses.cancel(id)).status, "cancelled");
}

if (part === "before") console.log(JSON.stringify(await before()));
else await after(JSON.parse(state));
