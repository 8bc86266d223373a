// Which sizes fit together, and which options mean something for a family.
#include <string>
#include <utility>

#include "models/synth/recipe.hpp"

namespace twill::models::synth {
namespace {

/// Bounds keep every count below 2^48 and generated vocabularies within what can be spelled.
constexpr std::pair<const char*, std::pair<std::int32_t recipe::*, std::int32_t>> most[] = {
    {"vocab", {&recipe::vocab_size, 800000}}, {"hidden", {&recipe::hidden_size, 1 << 17}},
    {"layers", {&recipe::n_layers, 1024}},    {"heads", {&recipe::n_heads, 4096}},
    {"head-dim", {&recipe::head_dim, 4096}},  {"mlp", {&recipe::mlp_size, 1 << 19}},
    {"embed", {&recipe::embed_dim, 1 << 17}}, {"context", {&recipe::context_length, 1 << 24}},
};

failure wrong(const std::string& field, const std::string& rule, const std::string& given) {
  return {errc::bad_metadata, "`" + field + "` must be " + rule + ", got " + given};
}

result<nothing> check_heads(const recipe& r) {
  if (r.head_dim == 0 && r.hidden_size % r.n_heads != 0)
    return wrong("hidden", "a multiple of the " + std::to_string(r.n_heads) + " heads",
                 std::to_string(r.hidden_size));
  if (r.n_kv_heads > r.n_heads || r.n_heads % r.n_kv_heads != 0)
    return wrong("kv-heads", "a divisor of the " + std::to_string(r.n_heads) + " heads",
                 std::to_string(r.n_kv_heads));
  const bool grouped = r.family != "opt" && r.family != "qwen" && r.family != "baichuan";
  if (!grouped && r.n_kv_heads != r.n_heads)
    return wrong("kv-heads", "equal to heads for " + r.family, std::to_string(r.n_kv_heads));
  const std::int32_t multiple = r.family == "chatglm" ? 4 : 2;
  if (r.head_size() % multiple != 0)
    return wrong("head-dim", "a multiple of " + std::to_string(multiple),
                 std::to_string(r.head_size()));
  const bool free_head = r.family == "chatglm" || r.family == "qwen" || r.family == "qwen3" ||
                         r.family == "llama" || r.family == "mistral";
  if (!free_head && r.head_size() * r.n_heads != r.hidden_size)
    return wrong("head-dim", "hidden / heads for " + r.family, std::to_string(r.head_size()));
  return nothing{};
}

result<nothing> check_family_options(const recipe& r) {
  const auto only = [&](bool set, const char* option, bool allowed) -> result<nothing> {
    if (set && !allowed)
      return failure{errc::bad_metadata, "`" + std::string(option) + "` is not for " + r.family};
    return nothing{};
  };
  const bool spm = r.text == text_kind::sentence_piece;
  const bool llama_like =
      r.family == "llama" || r.family == "mistral" || r.family == "qwen2" || r.family == "qwen3";
  const bool own_head = r.family == "qwen" || r.family == "chatglm" || r.family == "baichuan";
  for (const auto& checked : {only(r.window > 0, "window", r.family == "mistral"),
                              only(r.embed_dim > 0, "embed", r.family == "opt"),
                              only(!r.pre_norm, "pre-norm", r.family == "opt"),
                              only(r.alibi, "alibi", r.family == "baichuan"),
                              only(r.rope_theta != 10000, "theta", llama_like),
                              only(r.rope_ratio != 1, "rope-ratio", r.family == "chatglm"),
                              only(r.attention_bias, "bias", r.family == "llama"),
                              only(r.chatml, "chatml", spm), only(r.tied_head, "tied", !own_head)})
    if (!checked.ok()) return checked.error();
  if (r.family == "opt" && !r.tied_head) return wrong("tied", "true for opt", "false");
  // Readers tell Baichuan's position kind by these sizes (its config does not say it).
  if (r.family == "baichuan" && (r.alibi ? r.hidden_size == 4096 : r.hidden_size == 5120))
    return wrong("hidden",
                 r.alibi ? "another size than 4096 with ALiBi"
                         : "another size than 5120 with rotary",
                 std::to_string(r.hidden_size));
  return nothing{};
}

result<nothing> check_packing(const recipe& r) {
  if (r.packed == packing::none) return nothing{};
  if (r.dtype != storage_type::f16)
    return wrong("dtype", "f16 with GPTQ and AWQ", name_of(r.dtype));
  if (r.group != -1 && (r.group < 8 || r.group % 8 != 0))
    return wrong("group", "-1 or a multiple of 8", std::to_string(r.group));
  const std::int32_t q = r.head_size() * r.n_heads;
  const std::int32_t kv = r.head_size() * r.n_kv_heads;
  for (const auto& [name, size] : {std::pair<const char*, std::int32_t>{"hidden", r.hidden_size},
                                   {"mlp", r.mlp_size},
                                   {"heads * head-dim", q}}) {
    if (size % 32 != 0 || (r.group > 0 && size % r.group != 0))
      return wrong(name, "a multiple of 32 and of the group when packed", std::to_string(size));
  }
  if (kv % 8 != 0)
    return wrong("kv-heads * head-dim", "a multiple of 8 when packed", std::to_string(kv));
  return nothing{};
}

} // namespace

result<nothing> validate(const recipe& r) {
  for (const auto& [name, limit] : most)
    if (r.*limit.first > limit.second)
      return wrong(name, "at most " + std::to_string(limit.second), std::to_string(r.*limit.first));
  for (const auto check : {check_heads, check_family_options, check_packing})
    if (auto done = check(r); !done.ok()) return done.error();
  return nothing{};
}

} // namespace twill::models::synth
