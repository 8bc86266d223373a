// The probabilities of an answer's tokens.
import { make } from "./dom.js";

function percent(logprob) {
  const share = Math.exp(logprob) * 100;
  return `${share >= 10 ? share.toFixed(0) : share.toPrecision(2)} %`;
}

function visible(token) {
  return token === "" ? "(nothing)" : token.replaceAll("\n", "⏎").replaceAll("\t", "⇥").replaceAll(" ", "␣");
}

function describe(token, tip) {
  const others = (token.top_logprobs ?? []).map((other) => make("tr", { class: other.token === token.token ? "chosen" : null },
    make("td", {}, make("code", {}, visible(other.token))), make("td", {}, percent(other.logprob))));
  tip.replaceChildren(make("p", {}, make("code", {}, visible(token.token)), ` ${percent(token.logprob)}`), make("table", {}, make("tbody", {}, ...others)));
}

/** The tokens of an answer: the less likely, the stronger their ground. Hovering, tapping or the arrow keys tell more. */
export function tokenList(tokens) {
  const tip = make("div", { class: "tip", role: "tooltip", id: "tip", hidden: true });
  const list = make("div", { class: "tokens", role: "listbox", "aria-label": "Tokens of the answer; the arrow keys go through them" });
  const hide = () => (tip.hidden = true);
  const show = (span) => {
    describe(tokens[Number(span.dataset.at)], tip);
    tip.hidden = false;
    const place = span.getBoundingClientRect();
    const below = place.bottom + 6 + tip.offsetHeight < innerHeight;
    tip.style.left = `${Math.max(8, Math.min(place.left, innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${below ? place.bottom + 6 : place.top - 6 - tip.offsetHeight}px`;
  };
  tokens.forEach((token, at) => {
    const share = Math.exp(token.logprob);
    const step = share > 0.9 ? 0 : share > 0.6 ? 1 : share > 0.3 ? 2 : share > 0.1 ? 3 : 4;
    list.append(make("span", { class: `token p${step}`, role: "option", tabindex: at === 0 ? "0" : "-1", "data-at": at, "aria-describedby": "tip" }, token.token));
  });
  const tokenOf = (event) => event.target.closest(".token");
  list.addEventListener("mouseover", (event) => tokenOf(event) && show(tokenOf(event)));
  list.addEventListener("mouseleave", hide);
  list.addEventListener("focusin", (event) => {
    list.querySelector('[tabindex="0"]')?.setAttribute("tabindex", "-1");
    tokenOf(event)?.setAttribute("tabindex", "0");
    if (tokenOf(event)) show(tokenOf(event));
  });
  list.addEventListener("focusout", hide);
  list.addEventListener("click", (event) => tokenOf(event)?.focus());
  list.addEventListener("keydown", (event) => {
    const at = document.activeElement;
    const next = { ArrowRight: at.nextElementSibling, ArrowLeft: at.previousElementSibling, Home: list.firstElementChild, End: list.lastElementChild }[event.key];
    if (event.key === "Escape") hide();
    if (!next) return;
    event.preventDefault();
    next.focus();
  });
  return make("div", {}, list, tip);
}
