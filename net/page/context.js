// How full a model's context is, and which turns must go where it is full.

/** {used, most} in tokens, as the answer that is shown last told, or a count since; `used` is null where neither is. */
export function contextOf(conversation, path, model) {
  const most = model?.max_model_len ?? null;
  if (path.length > 0 && conversation.counted?.last === path.at(-1).id) return { used: conversation.counted.tokens, most };
  const usage = path.findLast((node) => node.usage?.output_tokens !== undefined)?.usage;
  const used = usage === undefined ? null : (usage.total_tokens ?? (usage.input_tokens ?? 0) + usage.output_tokens);
  return { used, most };
}

/** The nodes that are sent: what comes behind the last that was dropped. */
export function sentOf(conversation, path) {
  const at = path.findIndex((node) => node.id === conversation.dropped);
  return path.slice(at + 1);
}

/**
 * The server can leave out the oldest turns by itself (`truncation: "auto"`), but does not tell which; the page shows them.
 *
 * The last node to drop, so that what is left of the oldest turns takes at most `most` tokens; null where the newest
 * turn alone is longer. `count(nodes)` promises their tokens.
 */
export async function lastToDrop(nodes, most, count) {
  const begins = nodes.flatMap((node, at) => (node.role === "user" && at > 0 ? [at] : [])); // where what is left may begin
  let low = 0;
  let high = begins.length; // begins[high] and later ones fit
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((await count(nodes.slice(begins[middle]))) <= most) high = middle;
    else low = middle + 1;
  }
  return low < begins.length ? nodes[begins[low] - 1].id : null;
}

/** Shows the meter below the field, and what to do when the context is nearly full. */
export function showContext({ used, most }, offers) {
  const element = document.getElementById("context");
  element.hidden = used === null || most === null;
  if (element.hidden) return;
  const share = Math.min(1, used / most);
  const meter = document.getElementById("context-meter");
  meter.value = share;
  const whole = (value) => value.toLocaleString("en");
  const text = `${whole(used)} of ${whole(most)} tokens`;
  meter.setAttribute("aria-valuetext", text);
  document.getElementById("context-text").textContent = `Context: ${text}`;
  document.getElementById("context-offers").replaceChildren(...(share < 0.85 ? [] : offers()));
}
