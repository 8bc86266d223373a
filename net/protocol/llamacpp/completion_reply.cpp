#include "net/protocol/llamacpp/completion_reply.hpp"

#include <utility>

#include "net/protocol/json/json_parse.hpp"
#include "net/protocol/llamacpp/llamacpp_error.hpp"

namespace twill::net {
namespace {

/// llama.cpp assigns each request to a slot; twill has no slots, so replies have this number.
constexpr std::int32_t no_slot = -1;

std::string_view stop_type_of(const actors::event& ev) {
  if (*ev.finish == actors::finish_reason::length) return "limit";
  return ev.stop_string.empty() ? "eos" : "word";
}

void add_bytes(json_writer& json, std::string_view bytes) {
  json.begin_array();
  for (const char byte : bytes)
    json.add(static_cast<int>(static_cast<unsigned char>(byte)));
  json.end_array();
}

void add_probability(json_writer& json, const actors::token_logprob& token) {
  json.field("id", token.id).field("token", token.bytes).key("bytes");
  add_bytes(json, token.bytes);
  json.field("logprob", shown_logprob(token.logprob));
}

/// Returns an object with only the members that `paths` names, each under its path. The path "a/b"
/// means the member b of a.
std::string selected(const std::string& object, const std::vector<std::string>& paths) {
  const auto parsed = parse_json(object);
  std::string out;
  if (!parsed.ok()) return object;
  value_object chosen;
  for (const auto& path : paths) {
    const value* at = &parsed.value();
    std::string_view rest = path;
    while (at != nullptr) {
      const auto end = std::min(rest.find('/'), rest.size());
      at = at->find(rest.substr(0, end));
      if (end == rest.size()) break;
      rest.remove_prefix(end + 1);
    }
    if (at != nullptr) chosen.emplace_back(path, *at);
  }
  merge_repeated_keys(chosen);
  json_writer(out).add(value(std::move(chosen)));
  return out;
}

void add_rate(json_writer& json, std::string_view name, std::int32_t n, double ms) {
  const std::string prefix(name);
  json.field(prefix + "_n", n)
      .field(prefix + "_ms", ms)
      .field(prefix + "_per_token_ms", n > 0 ? ms / n : 0.0)
      .field(prefix + "_per_second", ms > 0 ? n / ms * 1000 : 0.0);
}

} // namespace

completion_reply::completion_reply(completion_options options) : options_(std::move(options)) {
  const auto n = static_cast<std::size_t>(options_.choices_per_prompt);
  tallies_.resize(options_.prompts.size());
  outputs_.resize(options_.prompts.size() * n);
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    outputs_[i].index = i;
    outputs_[i].request = i / n;
    outputs_[i].first = outputs_[i].last = begun_;
  }
}

void completion_reply::on_event(std::size_t request, actors::event&& ev, std::string& out) {
  tallies_[request].add(ev);
  if (ev.choice >= options_.choices_per_prompt) return;
  if (ev.tokens.empty() && ev.text.empty() && !ev.finish.has_value()) return;
  auto& own = outputs_[request * static_cast<std::size_t>(options_.choices_per_prompt) +
                       static_cast<std::size_t>(ev.choice)];
  take_event(own, ev);
  if (!options_.stream) return;
  if (!ev.tokens.empty() || !ev.text.empty()) add_part(own, ev, out);
  if (!ev.finish.has_value()) return;
  out += "data: ";
  out += final_object(own);
  out += "\n\n";
}

void completion_reply::take_event(output& to, actors::event& ev) const {
  if (!ev.tokens.empty()) {
    to.last = clock::now();
    if (to.n_tokens == 0) to.first = to.last;
    to.n_tokens += static_cast<std::int32_t>(ev.tokens.size());
  }
  to.has_new_line = to.has_new_line || ev.text.find('\n') != std::string::npos;
  if (ev.finish.has_value()) {
    to.stop_type = stop_type_of(ev);
    to.stopping_word = ev.stop_string;
  }
  if (options_.stream) return;
  to.content += ev.text;
  if (options_.return_tokens || options_.n_probs > 0)
    for (auto& token : ev.tokens)
      to.tokens.push_back(std::move(token));
}

void completion_reply::add_part(const output& of, const actors::event& ev, std::string& out) const {
  out += "data: ";
  json_writer json(out);
  json.begin_object().field("index", of.index).field("content", ev.text).key("tokens");
  add_ids(json, ev.tokens);
  json.field("stop", false)
      .field("id_slot", no_slot)
      .field("tokens_predicted", of.n_tokens)
      .field("tokens_evaluated", tallies_[of.request].total().prompt_tokens);
  if (options_.timings_per_token) {
    json.key("timings");
    add_timings(json, of);
  }
  if (options_.n_probs > 0) {
    json.key("completion_probabilities");
    add_probabilities(json, ev.tokens);
  }
  json.end_object();
  out += "\n\n";
}

std::string completion_reply::final_object(const output& of) const {
  const auto& use = tallies_[of.request].total();
  std::string out;
  json_writer json(out);
  json.begin_object().field("index", of.index).field("content", of.content).key("tokens");
  add_ids(json,
          options_.return_tokens ? std::span(of.tokens) : std::span<const actors::token_output>());
  json.field("id_slot", no_slot)
      .field("stop", true)
      .field("model", options_.model)
      .field("tokens_predicted", of.n_tokens)
      .field("tokens_evaluated", use.prompt_tokens);
  json.key("generation_settings").raw(options_.settings);
  json.field("prompt", options_.prompts[of.request])
      .field("has_new_line", of.has_new_line)
      .field("truncated", false)
      .field("stop_type", of.stop_type)
      .field("stopping_word", of.stopping_word)
      .field("tokens_cached", use.cached_tokens);
  json.key("timings");
  add_timings(json, of);
  if (!options_.stream && options_.n_probs > 0) {
    json.key("completion_probabilities");
    add_probabilities(json, of.tokens);
  }
  json.end_object();
  return options_.response_fields.empty() ? out : selected(out, options_.response_fields);
}

void completion_reply::add_timings(json_writer& json, const output& of) const {
  using milliseconds = std::chrono::duration<double, std::milli>;
  const auto& use = tallies_[of.request].total();
  json.begin_object().field("cache_n", use.cached_tokens);
  add_rate(json, "prompt", use.prompt_tokens - use.cached_tokens,
           milliseconds(of.first - begun_).count());
  add_rate(json, "predicted", of.n_tokens, milliseconds(of.last - of.first).count());
  json.end_object();
}

void completion_reply::add_probabilities(json_writer& json,
                                         std::span<const actors::token_output> tokens) const {
  json.begin_array();
  for (const auto& token : tokens) {
    json.begin_object();
    add_probability(json, token.chosen);
    json.key("top_logprobs").begin_array();
    for (const auto& other : token.top) {
      json.begin_object();
      add_probability(json, other);
      json.end_object();
    }
    json.end_array().end_object();
  }
  json.end_array();
}

void completion_reply::on_end(std::string& out) {
  if (options_.stream) return;
  const bool several = outputs_.size() > 1;
  if (several) out += '[';
  for (const auto& one : outputs_) {
    if (one.index > 0) out += ',';
    out += final_object(one);
  }
  if (several) out += ']';
}

void completion_reply::on_error(const api_error& error, std::string& out) {
  out += "data: ";
  out += llamacpp_error(error).body;
  out += "\n\n";
}

} // namespace twill::net
