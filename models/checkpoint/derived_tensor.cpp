#include "models/checkpoint/derived_tensor.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>

namespace twill::models {
namespace {

/// Names that no family gives to a weight, as the last part of a tensor's name.
constexpr std::string_view tables[] = {
    // frequencies of rotary positions
    "inv_freq", "original_inv_freq", "attn_rot_embd",
    // their cosines and sines at all positions
    "cos_cached", "sin_cached", "cos_cache", "sin_cache", "cos_sin_cache",
    // numbers of positions, and masks of attention
    "position_ids", "masked_bias", "causal_mask", "future_mask", "alibi_mask"};

constexpr std::string_view attentions[] = {"attn", "attention", "self_attn", "self_attention"};

template <std::size_t N>
bool is_in(const std::string_view (&list)[N], std::string_view word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

/// Cuts off what follows the last dot, and returns it.
std::string_view take_last_part(std::string_view& name) {
  const auto dot = name.rfind('.');
  const std::string_view part = dot == name.npos ? name : name.substr(dot + 1);
  name = dot == name.npos ? std::string_view() : name.substr(0, dot);
  return part;
}

} // namespace

bool is_derived(const tensor_info& tensor) {
  std::string_view rest = tensor.name;
  std::string_view last = take_last_part(rest);
  // GGUF files put ".weight" behind every name.
  if (last == "weight") last = take_last_part(rest);
  if (is_in(tables, last)) return true;
  // GPT-2's causal mask has the name that a bias would have. // (1, 1, positions, positions)
  return last == "bias" && tensor.shape.size() > 2 && is_in(attentions, take_last_part(rest));
}

} // namespace twill::models
