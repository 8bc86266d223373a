#include "models/compute.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "gpu/attention/kv_element.hpp"
#include "models/decoder/w8a8_weights.hpp"

namespace twill::models {
namespace {

gpu::compute_type auto_compute(const model_spec& spec, const checkpoint& weights,
                               const gpu::device_info& device) {
  const std::string kind = main_kind(weights);
  if (kind == "F32") return gpu::compute_type::f32;
  const bool halves = kind == "F16" || kind == "BF16";
  // Weights of 16 bits are multiplied in their own type. Quantised weights can be multiplied in
  // either 16-bit type, but activations of a model that was trained in bf16 may overflow f16, so
  // f16 is chosen only if the config states f16. int8 is not chosen on a GPU, the only device that
  // multiplies f16, because it is not expected to make steps of few rows (tokens) faster there.
  if (device.multiplies_f16) {
    if (kind == "F16" || (!halves && spec.stated_type == gpu::dtype::f16))
      return gpu::compute_type::f16;
  } else if (!halves) {
    return gpu::compute_type::int8;
  }
  return device.multiplies_bf16 ? gpu::compute_type::bf16 : gpu::compute_type::f32;
}

gpu::dtype auto_kv_type(gpu::compute_type compute, const gpu::device_info& device) {
  if (compute == gpu::compute_type::f32) return gpu::dtype::f32;
  // Keys and values may overflow f16 if activations do, so both are kept in bf16.
  if (device.multiplies_f16 && compute == gpu::compute_type::bf16) return gpu::dtype::bf16;
  return device.half_kv;
}

failure unknown(const char* field, const std::string& words, const std::string& given) {
  return {errc::unsupported,
          "`" + std::string(field) + "` must be " + words + ", got \"" + given + "\""};
}

template <class... Elements>
std::optional<gpu::dtype> kv_type_named(const std::string& key, gpu::kv_element_list<Elements...>) {
  std::optional<gpu::dtype> found;
  ((key == gpu::kv_element<Elements>::key ? void(found = gpu::kv_element<Elements>::type) : void()),
   ...);
  return found;
}

/// Lists the accepted words, as in "auto, f32, f16, bf16 or int8".
template <class... Elements>
std::string kv_type_words(gpu::kv_element_list<Elements...>) {
  std::string words = "auto";
  std::size_t left = sizeof...(Elements);
  ((words += (--left == 0 ? " or " : ", ") + std::string(gpu::kv_element<Elements>::key)), ...);
  return words;
}

} // namespace

std::string main_kind(const checkpoint& weights) {
  std::map<std::string, std::int64_t> values;
  for (const tensor_info& t : weights.tensors())
    if (t.shape.size() == 2) values[t.type] += t.shape[0] * t.shape[1];
  std::string best;
  for (const auto& [kind, n] : values)
    if (best.empty() || n > values[best]) best = kind;
  return best;
}

result<compute_choice> resolve_compute(const std::string& compute, const std::string& kv_type,
                                       const model_spec& spec, const checkpoint& weights,
                                       const gpu::device_info& device) {
  compute_choice choice;
  if (compute == "f16" && !device.multiplies_f16)
    return failure{errc::unsupported,
                   "`model.compute` may be f16 only on a GPU; got \"f16\" on the " + device.kind +
                       ": use auto, int8, bf16 or f32"};
  if (compute == "auto")
    choice.compute = auto_compute(spec, weights, device);
  else if (compute == "f16")
    choice.compute = gpu::compute_type::f16;
  else if (compute == "bf16")
    choice.compute = gpu::compute_type::bf16;
  else if (compute == "int8")
    choice.compute = gpu::compute_type::int8;
  else if (compute == "w8a8")
    choice.compute = gpu::compute_type::w8a8;
  else if (compute != "f32")
    return unknown("model.compute", "auto, f32, f16, bf16, int8 or w8a8", compute);

  if (kv_type == "auto")
    choice.kv_type = auto_kv_type(choice.compute, device);
  else if (const auto named = kv_type_named(kv_type, gpu::kv_elements{}))
    choice.kv_type = *named;
  else
    return unknown("kv.type", kv_type_words(gpu::kv_elements{}), kv_type);
  return choice;
}

std::shared_ptr<const checkpoint> weights_for(gpu::compute_type compute, const model_spec& spec,
                                              std::shared_ptr<const checkpoint> weights,
                                              const gpu::device_info& device) {
  if (compute != gpu::compute_type::w8a8) return weights;
  std::set<std::string> kept{spec.names.positions};
  const auto table = weights->matrix(spec.names.embedding);
  if (!spec.tied_head || (table.ok() && table.value().group > 0)) kept.insert(spec.names.embedding);
  return rounded_to_8_bits(std::move(weights), kept,
                           device.multiplies_f16 ? w8a8_kernels::gpu : w8a8_kernels::host);
}

} // namespace twill::models
