#include "net/protocol/llamacpp/completion_sampling.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>

#include "config/base/assert.hpp"
#include "net/protocol/foreign_fields.hpp"
#include "net/protocol/json/members.hpp"
#include "net/protocol/llamacpp/completion_biases.hpp"
#include "net/protocol/llamacpp/completion_samplers.hpp"
#include "net/protocol/output_form.hpp"
#include "net/protocol/sampling_fields.hpp"
#include "net/random_id.hpp"

namespace twill::net {
namespace {

constexpr field_row refused(std::string_view name, std::string_view rule) {
  return {name, schema::any, rule, field_use::refused};
}
constexpr field_row ignored(std::string_view name) {
  return {name, schema::any, "llama.cpp", field_use::no_effect};
}
constexpr std::array sampling_rows = {
    field_row{"temperature", schema::number, "0 takes the likeliest token each time."},
    field_row{"top_k", schema::integer, "Keeps the k likeliest tokens; 0 and less keep all."},
    field_row{"top_p", schema::number,
              "Keeps the likeliest tokens that together have this share of the probability."},
    field_row{"min_p", schema::number,
              "Keeps tokens with at least this share of the likeliest one's probability."},
    field_row{"repeat_penalty", schema::number,
              "Divides the logits of tokens of prompt and output; 1 changes none."},
    field_row{"presence_penalty", schema::number,
              "Taken off the logits of tokens that the output has."},
    field_row{"frequency_penalty", schema::number,
              "Taken off a token's logit for each time the output has it."},
    field_row{"repeat_last_n", R"("type":"integer","minimum":-1)",
              "0 turns the penalties off; any other value changes nothing."},
    field_row{"samplers", R"("type":["array","string"])",
              "A sampler that is not named is not applied; the order must be the usual one."},
    field_row{"seed", schema::integer, "-1 draws one."},
    field_row{"ignore_eos", schema::boolean, "The model's end tokens do not end the output."},
    field_row{"logit_bias", R"("type":["array","object"])",
              "Token ids or texts and what is added to their logits; false bans them."},
    field_row{"stop", schema::strings, "Texts that end the output, and are left out."},
    refused("dynatemp_range", "0: the temperature is the same for all tokens"),
    refused("top_n_sigma", "0 or less, which is off"),
    refused("xtc_probability", "0, which is off"),
    refused("typical_p", "1, which is off"),
    refused("dry_multiplier", "0, which is off"),
    refused("mirostat", "0, which is off"),
    refused("adaptive_target", "negative, which is off"),
    refused("min_keep", "0 or 1"),
    refused("n_indent", "0, which is off"),
    refused("t_max_predict_ms", "0 or less, which is off"),
    refused("reasoning_budget_tokens", "negative, which is off"),
    refused("grammar_lazy", "false: a grammar holds from the first token on"),
    refused("grammar_triggers", "an empty list, or absent"),
    refused("image_data", "an empty list, or absent"),
    refused("lora", "an empty list, or one with every `scale` 0: there are none"),
    ignored("n_keep"),
    ignored("n_discard"),
    ignored("id_slot"),
    ignored("cache_prompt"),
    ignored("return_progress"),
    ignored("tfs_z"),
    ignored("penalize_nl"),
    ignored("dynatemp_exponent"),
    ignored("dry_base"),
    ignored("dry_allowed_length"),
    ignored("dry_sequence_breakers"),
    ignored("mirostat_tau"),
    ignored("mirostat_eta"),
    field_row{"xtc_threshold", schema::number,
              "llama.cpp; above 0.5 `xtc_probability` counts as off.", field_use::no_effect},
    field_row{"dry_penalty_last_n", schema::number,
              "llama.cpp; at 0 `dry_multiplier` counts as off.", field_use::no_effect}};

constexpr std::int64_t any_seed = 0xFFFFFFFF; ///< llama.cpp also writes -1 as this value

float number_in(fields& from, std::string_view name, float absent) {
  float read = absent;
  from.read(name, read);
  return read;
}

/// Refuses a field, with the rule in the field's row as the message.
void refuse(fields& from, std::string_view name) {
  if (!from.ok()) return;
  const auto row = std::find_if(sampling_rows.begin(), sampling_rows.end(),
                                [&](const field_row& one) { return one.name == name; });
  TWILL_ASSERT(row != sampling_rows.end(), "a refused field without a row");
  from.reject(name, row->note, *from.find(name));
}

/// Reads a number; a value outside [low, high] is set to the nearest bound, as in llama.cpp.
void read_clamped(fields& from, std::string_view name, float low, float high, float& to) {
  from.read(name, to);
  if (from.find(name) != nullptr) to = std::clamp(to, low, high);
}

void read_plain_sampling(fields& from, config::sampling_params& to) {
  read_clamped(from, "temperature", 0, std::numeric_limits<float>::max(), to.temperature);
  from.read("top_k", to.top_k);
  to.top_k = std::max(0, to.top_k);
  read_clamped(from, "top_p", 0, 1, to.top_p);
  read_clamped(from, "min_p", 0, 1, to.min_p);
  from.read("repeat_penalty", to.repetition_penalty);
  from.read("presence_penalty", to.presence_penalty);
  from.read("frequency_penalty", to.frequency_penalty);
  from.read("ignore_eos", to.ignore_eos);
}

/// Reads `repeat_last_n`. Penalties always count all tokens of the context. Only the value 0 has an
/// effect: as in llama.cpp, it turns the penalties off.
void read_penalty_window(fields& from, config::sampling_params& to) {
  std::int32_t window = -1;
  from.read("repeat_last_n", window, -1);
  if (window == 0) put_penalties_off(to);
}

void refuse_other_samplers(fields& from) {
  if (number_in(from, "dynatemp_range", 0) != 0) refuse(from, "dynatemp_range");
  if (number_in(from, "top_n_sigma", -1) > 0) refuse(from, "top_n_sigma");
  if (number_in(from, "xtc_probability", 0) > 0 && number_in(from, "xtc_threshold", 0.1f) <= 0.5f)
    refuse(from, "xtc_probability");
  if (number_in(from, "typical_p", 1) < 1) refuse(from, "typical_p");
  if (number_in(from, "dry_multiplier", 0) > 0 && number_in(from, "dry_penalty_last_n", 64) != 0)
    refuse(from, "dry_multiplier");
  if (number_in(from, "mirostat", 0) != 0) refuse(from, "mirostat");
  if (number_in(from, "adaptive_target", -1) >= 0) refuse(from, "adaptive_target");
  if (number_in(from, "min_keep", 0) > 1) refuse(from, "min_keep");
  if (number_in(from, "n_indent", 0) > 0) refuse(from, "n_indent");
  if (number_in(from, "t_max_predict_ms", 0) > 0) refuse(from, "t_max_predict_ms");
  if (number_in(from, "reasoning_budget_tokens", -1) >= 0) refuse(from, "reasoning_budget_tokens");
}

void refuse_what_is_not_there(fields& from) {
  bool lazy = false;
  from.read("grammar_lazy", lazy);
  if (lazy) refuse(from, "grammar_lazy");
  for (const auto* name : {"grammar_triggers", "image_data"})
    if (const auto* v = from.find(name); v != nullptr && *v != value(value_list{}))
      refuse(from, name);
  const auto* adapters = from.find("lora");
  if (adapters == nullptr) return;
  const auto* list = adapters->as_list();
  const bool none = list != nullptr && std::all_of(list->begin(), list->end(), [](const auto& one) {
                      const auto* scale = member(one, "scale");
                      return scale != nullptr && scale->as_number() == 0.0;
                    });
  if (!none) refuse(from, "lora");
}

/// Reads `seed`. Values such as -1 ask for a random seed, which is drawn here so that the reply can
/// contain it.
void read_completion_seed(fields& from, config::sampling_params& to) {
  const auto* given = from.find("seed");
  const auto integer = given == nullptr ? std::nullopt : as_integer(*given);
  if (given == nullptr || integer == -1 || integer == any_seed)
    to.seed = draw_seed();
  else
    from.read("seed", to.seed);
}

} // namespace

config::sampling_params llamacpp_defaults(const config::sampling_params& of_model) {
  const config::sampling_params off;
  auto defaults = of_model;
  if (defaults.temperature == off.temperature) defaults.temperature = 0.8f;
  if (defaults.top_k == off.top_k) defaults.top_k = 40;
  if (defaults.top_p == off.top_p) defaults.top_p = 0.95f;
  if (defaults.min_p == off.min_p) defaults.min_p = 0.05f;
  return defaults;
}

void add_completion_sampling_rows(field_rows& to) {
  add_rows(to, sampling_rows);
}

void read_completion_sampling(fields& from, const codec_context& context, actors::request& to) {
  note_ignored(from, sampling_rows);
  auto& sampling = to.sampling;
  read_plain_sampling(from, sampling);
  read_penalty_window(from, sampling);
  refuse_other_samplers(from);
  refuse_what_is_not_there(from);
  if (from.ok()) read_samplers(from, sampling);
  read_completion_seed(from, sampling);
  if (from.ok()) read_completion_biases(from, context, sampling);
  from.read_strings("stop", sampling.stop);
  std::erase(sampling.stop, "");
  read_output_form(from, to);
}

} // namespace twill::net
