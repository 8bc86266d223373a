#include "models/families/rotary.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "models/decoder/frequencies.hpp"

namespace twill::models::families {
namespace {

std::vector<float> rounded(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

/// Llama 3.1 divides frequencies of long wavelengths by the factor, keeps those of short
/// wavelengths, and interpolates between them.
void scale_llama3(config_reader& scaling, std::vector<double>& freq) {
  const double factor = scaling.number_or({"factor"}, 8);
  const double low = scaling.number_or({"low_freq_factor"}, 1);
  const double high = scaling.number_or({"high_freq_factor"}, 4);
  const double trained = scaling.size({"original_max_position_embeddings"});
  if (high <= low)
    return scaling.fail(errc::bad_metadata, "`high_freq_factor` must be above `low_freq_factor`");
  for (double& f : freq) {
    const double rotations = trained * f / (2 * std::numbers::pi);
    if (rotations < low)
      f /= factor;
    else if (rotations <= high) {
      const double kept = (rotations - low) / (high - low);
      f = (1 - kept) * f / factor + kept * f;
    }
  }
}

double yarn_magnitude(double factor, double mscale) {
  return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

/// YaRN keeps high rotary frequencies, divides low ones by the factor, and interpolates linearly
/// between them.
void scale_yarn(config_reader& scaling, double base, double trained, rope_rule& rope,
                std::vector<double>& freq) {
  const double factor = scaling.number_or({"factor"}, 1);
  const auto or_default = [](double x, double fallback) { return x == 0 ? fallback : x; };
  const double fast = or_default(scaling.number_or({"beta_fast"}, 32), 32);
  const double slow = or_default(scaling.number_or({"beta_slow"}, 1), 1);
  const double mscale = scaling.number_or({"mscale"}, 0);
  const double mscale_all = scaling.number_or({"mscale_all_dim"}, 0);
  const double inferred = mscale != 0 && mscale_all != 0
                              ? yarn_magnitude(factor, mscale) / yarn_magnitude(factor, mscale_all)
                              : yarn_magnitude(factor, 1);
  rope.magnitude = static_cast<float>(scaling.number_or({"attention_factor"}, inferred));

  const double dim = rope.rotary_dim;
  const auto dimension_of = [&](double rotations) {
    return dim * std::log(trained / (rotations * 2 * std::numbers::pi)) / (2 * std::log(base));
  };
  double first = dimension_of(fast), last = dimension_of(slow);
  if (scaling.flag_or("truncate", true)) {
    first = std::floor(first);
    last = std::ceil(last);
  }
  first = std::max(first, 0.0);
  last = std::min(last, dim - 1);
  if (first == last) last += 0.001;
  for (std::size_t i = 0; i < freq.size(); ++i) {
    const double divided = std::clamp((static_cast<double>(i) - first) / (last - first), 0.0, 1.0);
    freq[i] = freq[i] / factor * divided + freq[i] * (1 - divided);
  }
}

void read_scaling(config_reader& scaling, double base, model_spec& spec,
                  std::vector<double>& freq) {
  const std::string kind = scaling.find("rope_type") != nullptr
                               ? scaling.word_or("rope_type", "")
                               : scaling.word_or("type", "default");
  const double factor = scaling.number_or({"factor"}, 1);
  if (factor < 1)
    return scaling.fail(errc::bad_metadata,
                        "`factor` must be at least 1, got " + std::to_string(factor));
  if (kind == "default") return;
  if (kind == "linear") {
    for (double& f : freq)
      f /= factor;
    spec.context_length = lengthened(spec.context_length, factor);
  } else if (kind == "dynamic") {
    spec.rope.growth = rope_growth::length_ntk;
    spec.rope.base = base;
    spec.rope.factor = factor;
    spec.rope.trained_length = spec.context_length;
    spec.context_length = lengthened(spec.context_length, factor);
  } else if (kind == "llama3") {
    scale_llama3(scaling, freq);
  } else if (kind == "yarn") {
    const std::int32_t trained =
        std::max(scaling.size_or({"original_max_position_embeddings"}, spec.context_length), 1);
    scale_yarn(scaling, base, trained, spec.rope, freq);
    spec.context_length = std::max(spec.context_length, lengthened(trained, factor));
  } else {
    scaling.fail(
        errc::unsupported,
        "the rotary scaling kind must be default, linear, dynamic, llama3 or yarn, got \"" +
            kind.substr(0, 100) + "\"");
  }
}

} // namespace

std::int32_t lengthened(std::int32_t length, double factor) {
  return static_cast<std::int32_t>(std::min(length * std::max(factor, 1.0), double{1 << 26}));
}

void read_rotary(config_reader& config, model_spec& spec) {
  // Newer files have all keys of rotary positions in one object, `rope_parameters`.
  const value* parameters = config.find("rope_parameters");
  const value* scaling = parameters != nullptr ? parameters : config.find("rope_scaling");
  const value nobody = value_object{};
  config_reader inner(scaling != nullptr ? *scaling : nobody, "config.json: rope_scaling");
  const double base = inner.number_or({"rope_theta"}, config.number_or({"rope_theta"}, 10000.0));
  const double part = config.number_or({"partial_rotary_factor"}, 1);
  if (base <= 1 || part <= 0 || part > 1 || spec.head_dim < 2 || spec.head_dim > 4096)
    return config.fail(errc::bad_metadata,
                       "`rope_theta` must be above 1, `partial_rotary_factor` in 0..1 and the head "
                       "size in 2..4096, got " +
                           std::to_string(base) + ", " + std::to_string(part) + " and " +
                           std::to_string(spec.head_dim));
  spec.rope.kind = gpu::rope_kind::half_split;
  spec.rope.rotary_dim = static_cast<std::int32_t>(spec.head_dim * part);
  std::vector<double> freq = plain_frequencies(base, spec.rope.rotary_dim);
  if (scaling != nullptr && scaling->as_object() == nullptr)
    return config.fail(errc::bad_metadata,
                       "`rope_scaling` must be an object, got " + describe(*scaling));
  if (scaling != nullptr) read_scaling(inner, base, spec, freq);
  config.adopt(inner);
  spec.rope.inv_freq = rounded(freq);
}

} // namespace twill::models::families
