#include "models/families/gguf_scaling.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <string>

#include "models/families/rotary.hpp"

namespace twill::models::families {
namespace {

// llama.cpp reads the keys `rope.scaling.yarn_*` (YaRN's betas, extrapolation factor and multiplier
// of the logarithm) only for architectures that twill does not support. This file therefore uses
// llama.cpp's defaults.
constexpr float beta_fast = 32, beta_slow = 1;

/// Returns the index, not rounded, of the rotary pair whose angle makes `rotations` full turns
/// within the trained length. It is computed in f32, so that rounding it to an integer gives the
/// same result as in llama.cpp.
float turning_dimension(float dims, float trained, float rotations, float base) {
  return dims * std::log(trained / (rotations * 2 * std::numbers::pi_v<float>)) /
         (2 * std::log(base));
}

/// YaRN keeps high rotary frequencies, divides low ones by the factor, and interpolates linearly
/// between them.
void scale_yarn(float trained, float base, double factor, model_spec& spec,
                std::vector<double>& freq) {
  const auto dims = static_cast<float>(spec.rope.rotary_dim);
  const float first = std::max(std::floor(turning_dimension(dims, trained, beta_fast, base)), 0.0f);
  const float last =
      std::min(std::ceil(turning_dimension(dims, trained, beta_slow, base)), dims - 1);
  for (std::size_t i = 0; i < freq.size(); ++i) {
    const float y = (static_cast<float>(i) - first) / std::max(0.001f, last - first);
    const double divided = std::clamp(y, 0.0f, 1.0f);
    freq[i] = freq[i] / factor * divided + freq[i] * (1 - divided);
  }
  // YaRN multiplies cos and sin by the magnitude m = 1 + 0.1 ln(factor). ggml's rope op multiplies
  // by m. llama.cpp also gives that op a factor of its own, but this is m / m, so m is applied once
  // in total.
  if (factor > 1) spec.rope.magnitude *= static_cast<float>(1 + 0.1 * std::log(factor));
}

double number_from_0(gguf_reader& file, const char* key, double fallback) {
  const double given = file.number_or(key, fallback);
  if (given >= 0) return given;
  file.fail(errc::bad_metadata,
            file.quoted(key) + " must be at least 0, got " + std::to_string(given));
  return fallback;
}

} // namespace

void read_gguf_scaling(gguf_reader& file, double base, model_spec& spec,
                       std::vector<double>& freq) {
  // Files from before the key `rope.scaling.type` have the factor only under its older name.
  const std::string type = file.word_or("rope.scaling.type", "linear");
  const char* key = file.has("rope.scaling.factor") ? "rope.scaling.factor" : "rope.scale_linear";
  const double given = number_from_0(file, key, 0);
  const double factor = given == 0 ? 1 : given; // 0 means no scaling
  spec.rope.magnitude = static_cast<float>(file.number_or("rope.scaling.attn_factor", 1));
  if (type == "none") return;
  if (type == "linear") {
    for (double& f : freq)
      f /= factor;
    return;
  }
  if (type != "yarn")
    return file.fail(errc::unsupported, file.quoted("rope.scaling.type") +
                                            " must be none, linear or yarn, got \"" +
                                            type.substr(0, 100) + "\"");
  if (base <= 1)
    return file.fail(errc::bad_metadata, file.quoted("rope.freq_base") +
                                             " must be above 1 with YaRN, got " +
                                             std::to_string(base));
  const char* length_key = "rope.scaling.original_context_length";
  const std::int32_t original = file.size_or(length_key, 0);
  const std::int32_t trained = original == 0 ? spec.context_length : original;
  scale_yarn(static_cast<float>(trained), static_cast<float>(base), factor, spec, freq);
  spec.context_length = std::max(spec.context_length, lengthened(trained, factor));
}

} // namespace twill::models::families
