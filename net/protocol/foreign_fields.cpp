#include "net/protocol/foreign_fields.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <numeric>
#include <string>
#include <string_view>

#include "config/base/log.hpp"

namespace twill::net {
namespace {

constexpr field_row ignored(std::string_view name, std::string_view of) {
  return {name, schema::any, of, field_use::no_effect};
}

constexpr std::array ignored_table = {
    // llama.cpp
    ignored("repeat_last_n", "llama.cpp"), ignored("typical_p", "llama.cpp"),
    ignored("tfs_z", "llama.cpp"), ignored("mirostat", "llama.cpp"),
    ignored("mirostat_tau", "llama.cpp"), ignored("mirostat_eta", "llama.cpp"),
    ignored("dynatemp_range", "llama.cpp"), ignored("dynatemp_exponent", "llama.cpp"),
    ignored("xtc_probability", "llama.cpp"), ignored("xtc_threshold", "llama.cpp"),
    ignored("dry_multiplier", "llama.cpp"), ignored("dry_base", "llama.cpp"),
    ignored("dry_allowed_length", "llama.cpp"), ignored("dry_penalty_last_n", "llama.cpp"),
    ignored("dry_sequence_breakers", "llama.cpp"), ignored("top_n_sigma", "llama.cpp"),
    ignored("samplers", "llama.cpp"), ignored("n_keep", "llama.cpp"),
    ignored("n_discard", "llama.cpp"), ignored("n_probs", "llama.cpp"),
    ignored("min_keep", "llama.cpp"), ignored("penalize_nl", "llama.cpp"),
    ignored("cache_prompt", "llama.cpp"), ignored("id_slot", "llama.cpp"),
    ignored("t_max_predict_ms", "llama.cpp"), ignored("n_indent", "llama.cpp"),
    ignored("lora", "llama.cpp"), ignored("image_data", "llama.cpp"),
    ignored("response_fields", "llama.cpp"), ignored("timings_per_token", "llama.cpp"),
    ignored("post_sampling_probs", "llama.cpp"), ignored("reasoning_format", "llama.cpp"),
    ignored("return_progress", "llama.cpp"),
    // Ollama
    ignored("options", "Ollama"), ignored("num_ctx", "Ollama"), ignored("keep_alive", "Ollama"),
    ignored("think", "Ollama"), ignored("raw", "Ollama"), ignored("format", "Ollama"),
    ignored("num_batch", "Ollama"), ignored("num_gpu", "Ollama"), ignored("main_gpu", "Ollama"),
    ignored("num_thread", "Ollama"), ignored("num_keep", "Ollama"), ignored("numa", "Ollama"),
    ignored("low_vram", "Ollama"), ignored("use_mmap", "Ollama"), ignored("use_mlock", "Ollama"),
    // vLLM
    ignored("length_penalty", "vLLM"), ignored("early_stopping", "vLLM"),
    ignored("spaces_between_special_tokens", "vLLM"), ignored("vllm_xargs", "vLLM"),
    ignored("mm_processor_kwargs", "vLLM"), ignored("request_id", "vLLM"),
    ignored("detokenize", "vLLM"),
    // TGI and transformers
    ignored("do_sample", "TGI and transformers"), ignored("watermark", "TGI and transformers"),
    ignored("details", "TGI and transformers"),
    ignored("decoder_input_details", "TGI and transformers"),
    ignored("num_beams", "TGI and transformers"),
    ignored("no_repeat_ngram_size", "TGI and transformers"),
    ignored("epsilon_cutoff", "TGI and transformers"),
    ignored("eta_cutoff", "TGI and transformers"), ignored("penalty_alpha", "TGI and transformers"),
    ignored("guidance_scale", "TGI and transformers"),
    ignored("smoothing_factor", "TGI and transformers"),
    ignored("return_full_text", "TGI and transformers"),
    ignored("adapter_id", "TGI and transformers"),
    // OpenAI
    ignored("service_tier", "OpenAI"), ignored("prediction", "OpenAI"),
    ignored("reasoning_effort", "OpenAI"), ignored("verbosity", "OpenAI"),
    ignored("prompt_cache_key", "OpenAI"), ignored("prompt_cache_retention", "OpenAI"),
    ignored("safety_identifier", "OpenAI"),
    // Anthropic
    ignored("inference_geo", "Anthropic"), ignored("speed", "Anthropic"),
    ignored("diagnostics", "Anthropic"), ignored("user_profile_id", "Anthropic")};

constexpr std::size_t n_ignored = ignored_table.size();

/// Indices into `ignored_table`, sorted by name, for looking up each member of a body by binary
/// search. A body has few members, and most of them are not in the table.
constexpr auto by_name = [] {
  std::array<std::size_t, n_ignored> places{};
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::sort(places.begin(), places.end(), [](std::size_t a, std::size_t b) {
    return ignored_table[a].name < ignored_table[b].name;
  });
  return places;
}();

/// Bodies with more members than this, which is more than any client sends, are not searched.
constexpr std::size_t most_members = 256;

std::array<std::atomic<bool>, n_ignored> noted;

/// Logs the given fields that are ignored and whose row satisfies `wanted`.
template <class Wanted>
void note_given(const fields& from, Wanted wanted) {
  const auto members = from.members();
  if (members.size() > most_members) return;
  for (const auto& [name, given] : members) {
    const std::string_view member = name;
    const auto found = std::lower_bound(
        by_name.begin(), by_name.end(), member,
        [](std::size_t place, std::string_view key) { return ignored_table[place].name < key; });
    if (found == by_name.end() || ignored_table[*found].name != member || given.is_null()) continue;
    auto& known = noted[*found];
    if (known.load(std::memory_order_relaxed) || !wanted(member) || known.exchange(true)) continue;
    log::info("a request has `" + name +
              "`, which this server ignores; further ones are not logged");
  }
}

} // namespace

std::span<const field_row> ignored_rows() {
  return ignored_table;
}

void note_ignored(const fields& from) {
  note_given(from, [](std::string_view) { return true; });
}

void note_ignored(const fields& from, std::span<const field_row> rows) {
  note_given(from, [&](std::string_view name) {
    return std::any_of(rows.begin(), rows.end(), [&](const field_row& row) {
      return row.use == field_use::no_effect && row.name == name;
    });
  });
}

} // namespace twill::net
