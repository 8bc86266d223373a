#include "net/protocol/llamacpp/completion_settings.hpp"

namespace twill::net {
namespace {

/// The value that llama.cpp writes if no seed was chosen.
constexpr std::int64_t no_seed = 0xFFFFFFFF;

void add_samplers_off(json_writer& json) {
  json.field("dynatemp_range", 0.0)
      .field("dynatemp_exponent", 1.0)
      .field("top_n_sigma", -1.0)
      .field("xtc_probability", 0.0)
      .field("xtc_threshold", 0.1)
      .field("typical_p", 1.0)
      .field("dry_multiplier", 0.0)
      .field("mirostat", 0)
      .field("min_keep", 0)
      .field("n_keep", 0)
      .field("n_discard", 0)
      .field("post_sampling_probs", false);
  json.key("lora").begin_array().end_array();
}

void add_distribution(json_writer& json, const config::sampling_params& params) {
  json.key("seed");
  if (params.seed.has_value())
    json.raw(std::to_string(*params.seed));
  else
    json.add(no_seed);
  json.field("temperature", params.temperature)
      .field("top_k", params.top_k)
      .field("top_p", params.top_p)
      .field("min_p", params.min_p)
      .field("repeat_last_n", -1)
      .field("repeat_penalty", params.repetition_penalty)
      .field("presence_penalty", params.presence_penalty)
      .field("frequency_penalty", params.frequency_penalty);
  json.key("logit_bias").begin_array();
  for (const auto& [token, bias] : params.logit_bias)
    json.begin_object().field("bias", bias).field("token", token).end_object();
  json.end_array();
}

} // namespace

void add_completion_settings(json_writer& json, const completion_settings& settings) {
  const auto& params = settings.sampling;
  json.begin_object();
  add_distribution(json, params);
  add_samplers_off(json);
  json.key("stop").begin_array();
  for (const auto& text : params.stop)
    json.add(text);
  json.end_array()
      .field("max_tokens", params.max_tokens)
      .field("n_predict", params.max_tokens)
      .field("ignore_eos", params.ignore_eos)
      .field("stream", settings.stream)
      .field("n_probs", settings.n_probs)
      .field("grammar", settings.grammar)
      .field("timings_per_token", settings.timings_per_token);
  json.key("samplers").begin_array();
  for (const auto* name : {"penalties", "temperature", "min_p", "top_k", "top_p"})
    json.add(name);
  json.end_array().end_object();
}

} // namespace twill::net
