// Checks that the sizes of a recipe fit together and that its options apply to its family.
#include <algorithm>
#include <string>
#include <utility>

#include "models/families/family.hpp"
#include "models/synth/family_recipe.hpp"

namespace twill::models::synth {
namespace {

/// These bounds keep every count below 2^48, and keep vocabularies smaller than the number of
/// tokens that models/synth/vocabulary can make.
constexpr std::pair<const char*, std::pair<std::int32_t recipe::*, std::int32_t>> most[] = {
    {"vocab", {&recipe::vocab_size, 800000}},    {"hidden", {&recipe::hidden_size, 1 << 17}},
    {"layers", {&recipe::n_layers, 1024}},       {"heads", {&recipe::n_heads, 4096}},
    {"head-dim", {&recipe::head_dim, 4096}},     {"mlp", {&recipe::mlp_size, 1 << 19}},
    {"embed", {&recipe::embed_dim, 1 << 17}},    {"context", {&recipe::context_length, 1 << 24}},
    {"step-us", {&recipe::step_us, 10'000'000}},
};

result<nothing> check_heads(const recipe& r) {
  const family_recipe& rules = *r.family->recipe;
  const std::string name(r.family->name);
  if (r.head_dim == 0 && r.hidden_size % r.n_heads != 0)
    return wrong_recipe("hidden", "a multiple of the " + std::to_string(r.n_heads) + " heads",
                        std::to_string(r.hidden_size));
  if (r.n_kv_heads > r.n_heads || r.n_heads % r.n_kv_heads != 0)
    return wrong_recipe("kv-heads", "a divisor of the " + std::to_string(r.n_heads) + " heads",
                        std::to_string(r.n_kv_heads));
  if (!rules.grouped_heads && r.n_kv_heads != r.n_heads)
    return wrong_recipe("kv-heads", "equal to heads for " + name, std::to_string(r.n_kv_heads));
  if (r.head_size() % rules.head_size_multiple != 0)
    return wrong_recipe("head-dim", "a multiple of " + std::to_string(rules.head_size_multiple),
                        std::to_string(r.head_size()));
  if (!rules.any_head_size && r.head_size() * r.n_heads != r.hidden_size)
    return wrong_recipe("head-dim", "hidden / heads for " + name, std::to_string(r.head_size()));
  return nothing{};
}

result<nothing> check_family_options(const recipe& r) {
  const family_recipe& rules = *r.family->recipe;
  const auto refuse = [&](std::string_view option) {
    return failure{errc::bad_metadata,
                   "`" + std::string(option) + "` is not for " + std::string(r.family->name)};
  };
  const std::pair<bool, std::string_view> used[] = {
      {r.window > 0, "window"},         {r.embed_dim > 0, "embed"},
      {!r.pre_norm, "pre-norm"},        {r.alibi, "alibi"},
      {r.rope_theta != 10000, "theta"}, {r.rope_ratio != 1, "rope-ratio"},
      {r.attention_bias, "bias"},       {r.tied_head, "tied"}};
  // Only the preset `null`, which computes nothing, may state how long a step lasts and how often a
  // step fails. For a real model both follow from its computation.
  if (r.preset != "null" && r.step_us > 0) return refuse("step-us");
  if (r.preset != "null" && r.fault_every_s > 0) return refuse("fault-every");
  for (const auto& [set, option] : used)
    if (set && std::find(rules.options.begin(), rules.options.end(), option) == rules.options.end())
      return refuse(option);
  if (r.chatml && r.text != text_kind::sentence_piece) return refuse("chatml");
  return rules.check == nullptr ? result<nothing>(nothing{}) : rules.check(r);
}

result<nothing> check_packing(const recipe& r) {
  if (r.packed == packing::none) return nothing{};
  if (r.dtype != storage_type::f16)
    return wrong_recipe("dtype", "f16 with GPTQ and AWQ", name_of(r.dtype));
  if (r.group != -1 && (r.group < 8 || r.group % 8 != 0))
    return wrong_recipe("group", "-1 or a multiple of 8", std::to_string(r.group));
  const std::int32_t q = r.head_size() * r.n_heads;
  const std::int32_t kv = r.head_size() * r.n_kv_heads;
  for (const auto& [name, size] : {std::pair<const char*, std::int32_t>{"hidden", r.hidden_size},
                                   {"mlp", r.mlp_size},
                                   {"heads * head-dim", q}}) {
    if (size % 32 != 0 || (r.group > 0 && size % r.group != 0))
      return wrong_recipe(name, "a multiple of 32 and of the group when packed",
                          std::to_string(size));
  }
  if (kv % 8 != 0)
    return wrong_recipe("kv-heads * head-dim", "a multiple of 8 when packed", std::to_string(kv));
  return nothing{};
}

} // namespace

failure wrong_recipe(const std::string& field, const std::string& rule, const std::string& given) {
  return {errc::bad_metadata, "`" + field + "` must be " + rule + ", got " + given};
}

result<nothing> validate(const recipe& r) {
  for (const auto& [name, limit] : most)
    if (r.*limit.first > limit.second)
      return wrong_recipe(name, "at most " + std::to_string(limit.second),
                          std::to_string(r.*limit.first));
  for (const auto check : {check_heads, check_family_options, check_packing})
    if (auto done = check(r); !done.ok()) return done.error();
  return nothing{};
}

} // namespace twill::models::synth
