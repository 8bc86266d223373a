#include "net/protocol/foreign_fields.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <string>
#include <string_view>

#include "config/base/log.hpp"

namespace twill::net {
namespace {

constexpr std::array<std::string_view, 66> foreign = {
    // llama.cpp
    "repeat_last_n", "typical_p", "tfs_z", "mirostat", "mirostat_tau", "mirostat_eta",
    "dynatemp_range", "dynatemp_exponent", "xtc_probability", "xtc_threshold", "dry_multiplier",
    "dry_base", "dry_allowed_length", "dry_penalty_last_n", "dry_sequence_breakers", "top_n_sigma",
    "samplers", "n_keep", "n_discard", "n_probs", "min_keep", "penalize_nl", "cache_prompt",
    "id_slot", "t_max_predict_ms", "n_indent", "lora", "image_data", "response_fields",
    "timings_per_token", "post_sampling_probs", "reasoning_format",
    // Ollama
    "options", "num_ctx", "keep_alive", "think", "raw", "format",
    // vLLM
    "length_penalty", "early_stopping", "spaces_between_special_tokens", "vllm_xargs",
    "mm_processor_kwargs", "documents", "request_id", "detokenize",
    // TGI and transformers
    "do_sample", "watermark", "details", "decoder_input_details", "num_beams",
    "no_repeat_ngram_size", "epsilon_cutoff", "eta_cutoff", "penalty_alpha", "guidance_scale",
    "smoothing_factor", "return_full_text", "adapter_id",
    // OpenAI
    "service_tier", "modalities", "prediction", "reasoning_effort", "verbosity",
    "web_search_options", "prompt_cache_key"};

/// Each name is looked up among all members: a body with more of them than any client sends is not
/// searched.
constexpr std::size_t most_members = 256;

std::array<std::atomic<bool>, foreign.size()> noted;

} // namespace

void note_ignored(const fields& from) {
  if (from.size() > most_members) return;
  for (std::size_t i = 0; i < foreign.size(); ++i) {
    if (noted[i].load(std::memory_order_relaxed) || from.find(foreign[i]) == nullptr) continue;
    if (noted[i].exchange(true)) continue;
    log::info("a request has `" + std::string(foreign[i]) +
              "`, which this server ignores; further ones are not logged");
  }
}

} // namespace twill::net
