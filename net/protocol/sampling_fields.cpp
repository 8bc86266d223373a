#include "net/protocol/sampling_fields.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "net/protocol/field_table.hpp"
#include "net/protocol/foreign_fields.hpp"
#include "net/protocol/json/json_writer.hpp"

namespace twill::net {
namespace {

void read_logit_bias(fields& from, std::string_view name, config::sampling_params& to) {
  const auto* biases = from.object(name);
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

using params = config::sampling_params;
using sampling_of = fields_of<params>;

void read_bad_words(fields& from, std::string_view name, params& to) {
  if (const auto* words = from.find(name); words != nullptr && words->as_list() == nullptr)
    from.reject(name, "a list of strings", *words);
  from.read_strings(name, to.bad_words);
}

void read_allowed_ids(fields& from, std::string_view name, params& to) {
  from.read(name, to.allowed_token_ids);
  if (const auto* v = from.find(name); v != nullptr && to.allowed_token_ids.empty())
    from.reject(name, "a list of at least one token id", *v);
}

constexpr std::array sampling_table = {
    sampling_of::member<&params::temperature>("temperature",
                                              "0 takes the likeliest token each time.",
                                              R"("type":"number","minimum":0,"maximum":100)"),
    sampling_of::member<&params::top_k>("top_k", "Keeps the k likeliest tokens; 0 and -1 keep all.",
                                        R"("type":"integer","minimum":-1)"),
    sampling_of::member<&params::top_p>(
        "top_p", "Keeps the likeliest tokens that together have this share of the probability.",
        R"("type":"number","minimum":0,"maximum":1)"),
    sampling_of::member<&params::min_p>(
        "min_p", "Keeps tokens with at least this share of the likeliest one's probability.",
        R"("type":"number","minimum":0,"maximum":1)"),
    sampling_of::member<&params::repetition_penalty>(
        "repeat_penalty", "The name of llama.cpp and Ollama for `repetition_penalty`.",
        R"("type":"number","exclusiveMinimum":0)"),
    sampling_of::member<&params::repetition_penalty>(
        "repetition_penalty", "Divides the logits of tokens of prompt and output; 1 changes none.",
        R"("type":"number","exclusiveMinimum":0)"),
    sampling_of::member<&params::presence_penalty>(
        "presence_penalty", "Taken off the logits of tokens that the output has.",
        R"("type":"number","minimum":-2,"maximum":2)"),
    sampling_of::member<&params::frequency_penalty>(
        "frequency_penalty", "Taken off a token's logit for each time the output has it.",
        R"("type":"number","minimum":-2,"maximum":2)"),
    sampling_of::member<&params::seed>(
        "seed", "The same seed and request give the same output; without it the server draws one."),
    bound_field<params>{{"logit_bias",
                         R"("type":"object","additionalProperties":{"type":"number",)"
                         R"("minimum":-100,"maximum":100})",
                         "Token ids and what is added to their logits."},
                        read_logit_bias},
    sampling_of::at_least<&params::min_tokens, 0>("min_tokens", R"("type":"integer","minimum":0)",
                                                  "Nothing ends the output before so many tokens."),
    sampling_of::member<&params::ignore_eos>("ignore_eos",
                                             "The model's end tokens do not end the output."),
    sampling_of::member<&params::stop>("stop", "Texts that end the output, and are left out."),
    sampling_of::member<&params::stop_token_ids>("stop_token_ids",
                                                 "Token ids that end the output."),
    sampling_of::member<&params::include_stop_str_in_output>(
        "include_stop_str_in_output", "The text of `stop` that ended the output stays in it."),
    sampling_of::member<&params::skip_special_tokens>("skip_special_tokens",
                                                      "Special tokens give no text (the default)."),
    sampling_of::at_least<&params::n, 1>("n", R"("type":"integer","minimum":1)",
                                         "How many choices are made of each prompt."),
    bound_field<params>{{"bad_words", R"("type":"array","items":{"type":"string"})",
                         "Texts that the output must not hold."},
                        read_bad_words},
    bound_field<params>{{"allowed_token_ids", schema::token_ids, "Only these tokens are drawn."},
                        read_allowed_ids}};

constexpr std::string_view limit_schema = R"("type":"integer","minimum":-2)";
constexpr std::array limit_rows = {
    field_row{"n_predict", limit_schema, "llama.cpp's name for the most tokens of the output."},
    field_row{"num_predict", limit_schema, "Ollama's name for the most tokens of the output."},
    field_row{"max_new_tokens", limit_schema, "TGI's name for the most tokens of the output."}};

constexpr std::array chat_logprob_rows = {
    field_row{"logprobs", schema::boolean, "The log-probability of each token of the output."},
    field_row{"top_logprobs", R"("type":"integer","minimum":-1)",
              "With `logprobs`: how many likeliest tokens are named in each place; -1 for all."}};

constexpr std::array prompt_rows = {
    field_row{"prompt_logprobs", R"("type":"integer","minimum":-1)",
              "The log-probabilities of the prompt's tokens, with so many alternatives."},
    field_row{"truncate_prompt_tokens", R"("type":"integer","minimum":-1)",
              "Only the last so many tokens of the prompt are read; -1: as many as fit."}};

constexpr std::array queue_rows = {
    field_row{"priority", schema::integer,
              "A lower one is served earlier, among the requests of one key or one WebSocket."},
    field_row{"cache_salt", R"("type":"string","minLength":1,"maxLength":1024)",
              "Only prompts of the same salt share cached KV."}};

constexpr std::string_view unsupported = "absent: this server does not support it";
constexpr std::array refused_rows = {
    field_row{"structural_tag", schema::any, unsupported, field_use::refused},
    field_row{"logprob_token_ids", schema::any, unsupported, field_use::refused},
    field_row{"use_beam_search", schema::any, unsupported, field_use::refused},
    field_row{"thinking_token_budget", schema::any, unsupported, field_use::refused},
    field_row{"repetition_detection", schema::any, unsupported, field_use::refused},
    field_row{"suffix", schema::any, unsupported, field_use::refused},
    field_row{"audio", schema::any, "absent: no model here speaks", field_use::refused},
    field_row{"web_search_options", schema::any, "absent: this server searches no web",
              field_use::refused},
    field_row{"documents", schema::any, "absent: put them into a message", field_use::refused},
    field_row{"logits_processors", schema::any, unsupported, field_use::refused},
    field_row{"kv_transfer_params", schema::any,
              "absent: this server reads a prompt and generates from it in one process, and takes "
              "or gives no KV of others",
              field_use::refused}};
// OpenAI's clients send these fields with any request, so nothing is logged about them.
constexpr std::array quiet_rows = {
    field_row{"user", schema::any, "OpenAI", field_use::no_effect},
    field_row{"metadata", schema::any, "OpenAI", field_use::no_effect}};

constexpr std::array checked_rows = {field_row{"best_of", schema::integer, "Must be equal to `n`."},
                                     field_row{"modalities",
                                               R"("type":"array","items":{"enum":["text"]})",
                                               "Text is all that models here give."}};

} // namespace

void read_sampling(fields& from, config::sampling_params& to) {
  read_fields(from, sampling_table, to);
}

void read_sampling(fields& from, std::span<const std::string_view> names,
                   config::sampling_params& to) {
  for (const auto name : names)
    field_of(sampling_table, name).read(from, name, to);
}

void read_token_limit(fields& from, std::initializer_list<std::string_view> names,
                      std::int32_t least, config::sampling_params& to) {
  for (const auto name : names)
    if (from.find(name) != nullptr) return from.read(name, to.max_tokens, least);
  // The names that llama.cpp, Ollama and TGI use; there, -1 and -2 mean no limit.
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
  // -1 asks for the whole vocabulary. Each alternative costs a pass over the logits, so the limit
  // of the number of alternatives holds for -1 too.
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
  // -1 stands for as much of the prompt as the context holds beside the tokens to generate.
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
  reject_listed(from, refused_rows);
  if (const auto* best_of = from.find("best_of")) {
    std::int32_t n = 1;
    from.read("n", n);
    if (as_integer(*best_of) != n) from.reject("best_of", "equal to `n`", *best_of);
  }
  if (const auto* modalities = from.find("modalities")) {
    const auto* list = modalities->as_list();
    if (list == nullptr || std::any_of(list->begin(), list->end(),
                                       [](const value& one) { return one != value("text"); }))
      from.reject("modalities", R"(["text"], as models here give nothing else)", *modalities);
  }
}

void add_sampling_rows(field_rows& to) {
  add_rows(to, sampling_table);
}

void add_sampling_rows(field_rows& to, std::span<const std::string_view> names) {
  for (const auto name : names)
    to.push_back(field_of(sampling_table, name).row);
}

void add_limit_rows(field_rows& to, std::initializer_list<std::string_view> names) {
  for (const auto name : names)
    to.push_back({name, R"("type":"integer","minimum":0)", "The most tokens of the output."});
  add_rows(to, limit_rows);
}

void add_chat_logprob_rows(field_rows& to) {
  add_rows(to, chat_logprob_rows);
}

void add_prompt_option_rows(field_rows& to) {
  add_rows(to, prompt_rows);
}

void add_queue_rows(field_rows& to) {
  add_rows(to, queue_rows);
}

void add_foreign_rows(field_rows& to) {
  add_rows(to, checked_rows);
  add_rows(to, refused_rows);
  add_rows(to, quiet_rows);
  add_rows(to, ignored_rows());
}

std::optional<breach> breach_of(const config::sampling_params& params,
                                const codec_context& context) {
  const auto vocab_size = context.model.vocab_size > 0 ? context.model.vocab_size
                                                       : std::numeric_limits<std::int32_t>::max();
  return config::validate(params, context.limits, vocab_size);
}

void check_sampling(fields& from, const config::sampling_params& params,
                    const codec_context& context) {
  if (!from.ok()) return;
  if (const auto found = breach_of(params, context)) from.reject(*found);
}

} // namespace twill::net
