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

result<nothing> validate(const rope_rule& rope) {
  if (rope.kind == gpu::rope_kind::none) return nothing{};
  if (rope.rotary_dim == 0 || rope.rotary_dim % 2 != 0)
    return impossible("rotary_dim must be even and above 0, got " +
                      std::to_string(rope.rotary_dim));
  if (rope.inv_freq.size() != static_cast<std::size_t>(rope.rotary_dim / 2))
    return impossible("inv_freq must have rotary_dim / 2 values, got " +
                      std::to_string(rope.inv_freq.size()));
  for (const float f : rope.inv_freq)
    if (!std::isfinite(f)) return impossible("inv_freq must be finite, got " + std::to_string(f));
  if (!std::isfinite(rope.magnitude) || rope.magnitude <= 0)
    return impossible("the rotary magnitude must be above 0, got " +
                      std::to_string(rope.magnitude));
  if (rope.growth == rope_growth::none) return nothing{};
  if (rope.trained_length < 1 || rope.rotary_dim < 4 || !std::isfinite(rope.base) ||
      rope.base <= 1 || !std::isfinite(rope.factor) || rope.factor < 1)
    return impossible("growing frequencies need a trained length, rotary_dim above 2, a base "
                      "above 1 and a factor of at least 1");
  return nothing{};
}

} // namespace

result<nothing> validate(const model_spec& spec) {
  // The upper bounds keep the product of any two of these sizes and an element size below 2^63.
  const bound bounds[] = {
      {"vocab_size", spec.vocab_size, 1, 1 << 24},
      {"hidden_size", spec.hidden_size, 1, 1 << 20},
      {"embedding_size", spec.embedding_size, 1, 1 << 20},
      {"n_layers", spec.n_layers, 1, 1 << 12},
      {"n_heads", spec.n_heads, 1, 1 << 12},
      {"n_kv_heads", spec.n_kv_heads, 1, spec.n_heads},
      {"head_dim", spec.head_dim, 1, 1 << 12},
      {"mlp_size", spec.mlp_size, 1, 1 << 22},
      {"context_length", spec.context_length, 1, 1 << 26},
      {"rotary_dim", spec.rope.rotary_dim, 0, spec.head_dim},
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
  if (spec.embedding_size != spec.hidden_size &&
      (spec.names.project_in.empty() || spec.names.project_out.empty()))
    return impossible("embedding_size must equal hidden_size without projections, got " +
                      std::to_string(spec.embedding_size) + " and " +
                      std::to_string(spec.hidden_size));
  if (spec.gated_mlp && spec.activation != gpu::activation::silu)
    return failure{errc::unsupported, "model: a gated MLP must be activated by silu"};
  if (!spec.alibi_slopes.empty() &&
      spec.alibi_slopes.size() != static_cast<std::size_t>(spec.n_heads))
    return impossible("alibi_slopes must have one value per head, got " +
                      std::to_string(spec.alibi_slopes.size()));
  if (!spec.windowed.empty() && spec.windowed.size() != static_cast<std::size_t>(spec.n_layers))
    return impossible("windowed must have one value per layer, got " +
                      std::to_string(spec.windowed.size()));
  return validate(spec.rope);
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
