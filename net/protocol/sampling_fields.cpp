#include "net/protocol/sampling_fields.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "net/protocol/foreign_fields.hpp"
#include "net/protocol/json/json_writer.hpp"

namespace twill::net {
namespace {

void read_logit_bias(fields& from, config::sampling_params& to) {
  const auto* biases = from.object("logit_bias");
  if (biases == nullptr) return;
  for (const auto& [key, bias] : *biases->as_object()) {
    std::int32_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc{} || end != key.data() + key.size() || id < 0)
      return from.reject("logit_bias", "an object whose keys are token ids", value(key));
    const auto given = bias.as_number();
    if (!given.has_value()) return from.reject("logit_bias." + key, "a number", bias);
    if (!(std::abs(*given) <= 100))
      return from.reject("logit_bias." + key, "within [-100, 100]", bias);
    to.logit_bias.emplace_back(id, static_cast<float>(*given));
  }
}

bool is_off(const value& v) {
  if (const auto* flag = v.as_bool()) return !*flag;
  if (const auto* list = v.as_list()) return list->empty();
  if (const auto* text = v.as_string()) return text->empty();
  if (const auto integer = as_integer(v)) return *integer == 0;
  return false;
}

} // namespace

void read_sampling(fields& from, config::sampling_params& to) {
  from.read("temperature", to.temperature);
  from.read("top_k", to.top_k);
  from.read("top_p", to.top_p);
  from.read("min_p", to.min_p);
  from.read("repeat_penalty", to.repetition_penalty); // llama.cpp's and Ollama's name
  from.read("repetition_penalty", to.repetition_penalty);
  from.read("presence_penalty", to.presence_penalty);
  from.read("frequency_penalty", to.frequency_penalty);
  from.read("seed", to.seed);
  read_logit_bias(from, to);
  from.read("min_tokens", to.min_tokens, 0);
  from.read("ignore_eos", to.ignore_eos);
  from.read_strings("stop", to.stop);
  from.read("stop_token_ids", to.stop_token_ids);
  from.read("include_stop_str_in_output", to.include_stop_str_in_output);
  from.read("skip_special_tokens", to.skip_special_tokens);
  from.read("n", to.n, 1);
  if (const auto* words = from.find("bad_words"); words != nullptr && words->as_list() == nullptr)
    from.reject("bad_words", "a list of strings", *words);
  from.read_strings("bad_words", to.bad_words);
  from.read("allowed_token_ids", to.allowed_token_ids);
  if (const auto* v = from.find("allowed_token_ids"); v != nullptr && to.allowed_token_ids.empty())
    from.reject("allowed_token_ids", "a list of at least one token id", *v);
}

void read_token_limit(fields& from, std::initializer_list<std::string_view> names,
                      std::int32_t least, config::sampling_params& to) {
  for (const auto name : names)
    if (from.find(name) != nullptr) return from.read(name, to.max_tokens, least);
  // The names of llama.cpp, Ollama and TGI; -1 and -2 set no limit there.
  for (const auto* name : {"n_predict", "num_predict", "max_new_tokens"}) {
    const auto* given = from.find(name);
    if (given == nullptr) continue;
    const auto tokens = as_integer(*given);
    if (tokens != -1 && tokens != -2) return from.read(name, to.max_tokens, least);
    to.max_tokens = -1;
    return;
  }
}

void read_alternatives(fields& from, std::string_view name, const codec_context& context,
                       std::int32_t& to) {
  const auto* given = from.find(name);
  if (given == nullptr) return;
  from.read(name, to, -1);
  if (!from.ok() || to != -1) return;
  // Each alternative takes a pass over the logits, so the whole vocabulary is no exception to the
  // limit.
  to = context.model.vocab_size;
  const auto most = context.limits.max_logprobs;
  if (to > most)
    from.reject(name,
                "at most " + std::to_string(most) + " (`limits.max_logprobs`) where -1 asks for " +
                    "all " + std::to_string(to) + " tokens of the vocabulary",
                *given);
}

void read_chat_logprobs(fields& from, const codec_context& context, config::sampling_params& to) {
  bool wanted = false;
  from.read("logprobs", wanted);
  std::int32_t top = 0;
  read_alternatives(from, "top_logprobs", context, top);
  if (wanted)
    to.logprobs = top;
  else if (top > 0)
    from.reject("top_logprobs", "absent unless `logprobs` is true", value(std::int64_t{top}));
}

void read_prompt_options(fields& from, const codec_context& context, actors::request& to) {
  read_alternatives(from, "prompt_logprobs", context, to.prompt_logprobs);
  // -1: as much of the prompt as the model takes beside what is asked for.
  if (const auto* most = from.find("truncate_prompt_tokens");
      most != nullptr && as_integer(*most) == -1) {
    std::int32_t wanted = 0;
    for (const auto* name : {"max_completion_tokens", "max_tokens"})
      if (from.find(name) != nullptr && wanted == 0) from.read(name, wanted);
    to.truncate_prompt_tokens = std::max(1, context.model.max_model_len -
                                                std::clamp(wanted, 1, context.model.max_model_len));
    return;
  }
  from.read("truncate_prompt_tokens", to.truncate_prompt_tokens, 1);
}

void read_queue_fields(fields& from, actors::request& to) {
  constexpr std::size_t longest_salt = 1024;
  from.read("priority", to.priority);
  from.read("cache_salt", to.cache_salt);
  if (const auto* salt = from.find("cache_salt");
      salt != nullptr && (to.cache_salt.empty() || to.cache_salt.size() > longest_salt))
    from.reject("cache_salt", "a string of 1 to 1024 bytes", *salt);
}

void reject_unsupported(fields& from) {
  note_ignored(from);
  static constexpr std::array<std::string_view, 9> not_ours = {"structural_tag",
                                                               "logprob_token_ids",
                                                               "use_beam_search",
                                                               "thinking_token_budget",
                                                               "repetition_detection",
                                                               "suffix",
                                                               "audio",
                                                               "continue_final_message",
                                                               "logits_processors"};
  for (const auto name : not_ours)
    if (const auto* v = from.find(name); v != nullptr && !is_off(*v))
      return from.reject(name, "absent: this server does not support it", *v);
  if (const auto* v = from.find("kv_transfer_params"); v != nullptr && !is_off(*v))
    return from.reject(
        "kv_transfer_params",
        "absent: this server reads a prompt and generates from it in one process, and "
        "takes or gives no KV of others",
        *v);
  if (const auto* best_of = from.find("best_of")) {
    std::int32_t n = 1;
    from.read("n", n);
    if (as_integer(*best_of) != n) from.reject("best_of", "equal to `n`", *best_of);
  }
}

void check_sampling(fields& from, const config::sampling_params& params,
                    const codec_context& context) {
  if (!from.ok()) return;
  const auto vocab_size = context.model.vocab_size > 0 ? context.model.vocab_size
                                                       : std::numeric_limits<std::int32_t>::max();
  const auto checked = config::validate(params, context.limits, vocab_size);
  if (checked.ok()) return;
  auto error = from_engine(actors::errc::invalid_argument, checked.detail());
  error.code = errc::invalid_field;
  from.reject(std::move(error));
}

} // namespace twill::net
