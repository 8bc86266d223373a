#include "models/spec.hpp"

#include <cmath>
#include <string_view>

namespace twill::models {
namespace {

struct bound {
  const char* name;
  std::int64_t value;
  std::int64_t least;
  std::int64_t most;
};

failure impossible(const std::string& detail) {
  return {errc::bad_metadata, "model: " + detail};
}

} // namespace

result<nothing> validate(const model_spec& spec) {
  // The upper bounds keep every product of two of these, times an element size, in 63 bits.
  const bound bounds[] = {
      {"vocab_size", spec.vocab_size, 1, 1 << 24},
      {"hidden_size", spec.hidden_size, 1, 1 << 20},
      {"n_layers", spec.n_layers, 1, 1 << 12},
      {"n_heads", spec.n_heads, 1, 1 << 12},
      {"n_kv_heads", spec.n_kv_heads, 1, spec.n_heads},
      {"head_dim", spec.head_dim, 1, 1 << 12},
      {"mlp_size", spec.mlp_size, 1, 1 << 22},
      {"context_length", spec.context_length, 1, 1 << 26},
      {"rotary_dim", spec.rotary_dim, 0, spec.head_dim},
      {"window", spec.window, 0, 1 << 26},
  };
  for (const bound& b : bounds)
    if (b.value < b.least || b.value > b.most)
      return impossible(std::string(b.name) + " must be in " + std::to_string(b.least) + ".." +
                        std::to_string(b.most) + ", got " + std::to_string(b.value));
  if (spec.n_heads % spec.n_kv_heads != 0)
    return impossible("n_heads must be a multiple of n_kv_heads, got " +
                      std::to_string(spec.n_heads) + " and " + std::to_string(spec.n_kv_heads));
  if (!std::isfinite(spec.norm_epsilon) || spec.norm_epsilon < 0 || spec.norm_epsilon > 1)
    return impossible("norm_epsilon must be in 0..1, got " + std::to_string(spec.norm_epsilon));
  if (!std::isfinite(spec.attention_scale) || spec.attention_scale <= 0)
    return impossible("attention_scale must be above 0, got " +
                      std::to_string(spec.attention_scale));
  if (spec.rope == gpu::rope_kind::none) return nothing{};
  if (spec.rotary_dim == 0 || spec.rotary_dim % 2 != 0)
    return impossible("rotary_dim must be even and above 0, got " +
                      std::to_string(spec.rotary_dim));
  if (spec.inv_freq.size() != static_cast<std::size_t>(spec.rotary_dim / 2))
    return impossible("inv_freq must have rotary_dim / 2 values, got " +
                      std::to_string(spec.inv_freq.size()));
  for (const float f : spec.inv_freq)
    if (!std::isfinite(f)) return impossible("inv_freq must be finite, got " + std::to_string(f));
  return nothing{};
}

std::string layer_tensor(const std::string& pattern, std::int32_t layer) {
  std::string name = pattern;
  if (const auto at = name.find("{}"); at != std::string::npos)
    name.replace(at, 2, std::to_string(layer));
  return name;
}

std::string bias_of(const std::string& matrix) {
  constexpr std::string_view weight = ".weight";
  std::string name = matrix;
  if (name.ends_with(weight)) name.resize(name.size() - weight.size());
  return name + ".bias";
}

} // namespace twill::models
