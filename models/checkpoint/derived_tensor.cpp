#include "models/checkpoint/derived_tensor.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>

namespace twill::models {
namespace {

/// A tensor whose name ends in one of these words is a table that was computed from the
/// configuration. No model family gives such a name to a weight.
constexpr std::string_view tables[] = {
    // frequencies of rotary positions
    "inv_freq", "original_inv_freq", "attn_rot_embd",
    // cosines and sines of the rotary angles at all positions
    "cos_cached", "sin_cached", "cos_cache", "sin_cache", "cos_sin_cache",
    // indices of positions, and attention masks
    "position_ids", "masked_bias", "causal_mask", "future_mask", "alibi_mask"};

constexpr std::string_view attentions[] = {"attn", "attention", "self_attn", "self_attention"};

template <std::size_t N>
bool is_in(const std::string_view (&list)[N], std::string_view word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

/// Removes the last dot of `name` and the part after the dot, and returns that part.
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
  // GGUF files append ".weight" to the names of such tensors.
  if (last == "weight") last = take_last_part(rest);
  if (is_in(tables, last)) return true;
  // GPT-2's causal mask is named `bias`, but has more dimensions than a bias has: it is of shape
  // (1, 1, positions, positions).
  return last == "bias" && tensor.shape.size() > 2 && is_in(attentions, take_last_part(rest));
}

} // namespace twill::models
