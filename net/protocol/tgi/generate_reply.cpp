#include "net/protocol/tgi/generate_reply.hpp"

#include <limits>
#include <utility>

#include "net/protocol/tgi/tgi_error.hpp"

namespace twill::net {
namespace {

std::string_view finish_of(const actors::event& ev) {
  if (*ev.finish == actors::finish_reason::length) return "length";
  return ev.stop_string.empty() ? "eos_token" : "stop_sequence";
}

void add_tgi_token(json_writer& json, const actors::token_logprob& token, std::string_view text) {
  json.begin_object()
      .field("id", token.id)
      .field("text", text)
      .field("logprob", shown_logprob(token.logprob))
      .field("special", token.special)
      .end_object();
}

void add_top_tokens(json_writer& json, const actors::token_output& token) {
  json.begin_array();
  for (const auto& other : token.top)
    add_tgi_token(json, other, other.bytes);
  json.end_array();
}

} // namespace

double generate_reply::sequence::mean_logprob() const {
  return n_tokens == 0 ? -std::numeric_limits<double>::infinity() : logprobs / n_tokens;
}

generate_reply::generate_reply(generate_options options) : options_(std::move(options)) {
  sequences_.resize(static_cast<std::size_t>(options_.best_of));
}

void generate_reply::on_event(std::size_t, actors::event&& ev, std::string& out) {
  tally_.add(ev);
  if (!ev.prompt_scores.empty()) prefill_ = std::move(ev.prompt_scores);
  if (ev.choice >= options_.best_of) return;
  auto& own = sequences_[static_cast<std::size_t>(ev.choice)];
  own.text += ev.text;
  if (ev.finish.has_value()) own.finish = finish_of(ev);
  // In TGI, the last event of a stream always has a token, so one is added if the engine sent none.
  if (options_.stream && ev.finish.has_value() && ev.tokens.empty())
    ev.tokens.emplace_back().chosen.special = true;
  for (std::size_t i = 0; i < ev.tokens.size(); ++i) {
    const bool last = ev.finish.has_value() && i + 1 == ev.tokens.size();
    auto token = take_token(own, std::move(ev.tokens[i]), last);
    if (options_.stream)
      add_chunk(token, last ? &own : nullptr, out);
    else if (options_.details)
      own.tokens.push_back(std::move(token));
  }
}

generate_reply::shown_token generate_reply::take_token(sequence& of, actors::token_output&& token,
                                                       bool last) const {
  of.n_tokens += 1;
  of.logprobs += shown_logprob(token.chosen.logprob);
  shown_token shown{std::move(token), {}};
  shown.text = of.characters.push(shown.output.chosen.bytes);
  if (last) shown.text += of.characters.flush();
  return shown;
}

void generate_reply::add_seed(json_writer& json) const {
  json.key("seed");
  if (options_.seed.has_value())
    json.raw(std::to_string(*options_.seed));
  else
    json.add(nullptr);
}

void generate_reply::add_chunk(const shown_token& token, const sequence* ended, std::string& out) {
  out += "data:";
  json_writer json(out);
  json.begin_object().field("index", ++index_).key("token");
  add_tgi_token(json, token.output.chosen, token.text);
  if (options_.top_tokens > 0) {
    json.key("top_tokens");
    add_top_tokens(json, token.output);
  }
  if (ended == nullptr) {
    json.field("generated_text", nullptr).field("details", nullptr);
  } else {
    json.field("generated_text", options_.prefix + ended->text).key("details");
    if (options_.details) {
      json.begin_object()
          .field("finish_reason", ended->finish)
          .field("generated_tokens", ended->n_tokens);
      add_seed(json);
      json.field("input_length", tally_.total().prompt_tokens).end_object();
    } else {
      json.add(nullptr);
    }
  }
  json.end_object();
  out += "\n\n";
}

void generate_reply::add_prefill(json_writer& json) const {
  json.key("prefill").begin_array();
  for (std::size_t i = 0; i < prefill_.size(); ++i) {
    const auto& token = prefill_[i].chosen;
    json.begin_object().field("id", token.id).field("text", token.bytes).key("logprob");
    if (i == 0)
      json.add(nullptr); // the first token has no predecessor
    else
      json.add(shown_logprob(token.logprob));
    json.end_object();
  }
  json.end_array();
}

void generate_reply::add_tokens(json_writer& json, const sequence& of) const {
  json.key("tokens").begin_array();
  for (const auto& token : of.tokens)
    add_tgi_token(json, token.output.chosen, token.text);
  json.end_array();
  if (options_.top_tokens == 0) return;
  json.key("top_tokens").begin_array();
  for (const auto& token : of.tokens)
    add_top_tokens(json, token.output);
  json.end_array();
}

void generate_reply::add_sequence(json_writer& json, const sequence& of) const {
  json.field("finish_reason", of.finish).field("generated_tokens", of.n_tokens);
  add_seed(json);
  add_prefill(json);
  add_tokens(json, of);
}

std::size_t generate_reply::likeliest() const {
  std::size_t best = 0;
  for (std::size_t i = 1; i < sequences_.size(); ++i)
    if (sequences_[i].mean_logprob() > sequences_[best].mean_logprob()) best = i;
  return best;
}

void generate_reply::on_end(std::string& out) {
  if (options_.stream) return;
  const auto best = likeliest();
  json_writer json(out);
  if (options_.in_list) json.begin_array();
  json.begin_object().field("generated_text", options_.prefix + sequences_[best].text);
  if (options_.details) {
    json.key("details").begin_object();
    add_sequence(json, sequences_[best]);
    if (sequences_.size() > 1) {
      json.key("best_of_sequences").begin_array();
      for (std::size_t i = 0; i < sequences_.size(); ++i) {
        if (i == best) continue;
        json.begin_object().field("generated_text", options_.prefix + sequences_[i].text);
        add_sequence(json, sequences_[i]);
        json.end_object();
      }
      json.end_array();
    }
    json.end_object();
  }
  json.end_object();
  if (options_.in_list) json.end_array();
}

void generate_reply::on_error(const api_error& error, std::string& out) {
  out += "data:";
  out += tgi_error(error).body;
  out += "\n\n";
}

} // namespace twill::net
