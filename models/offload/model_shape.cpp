#include "models/offload/model_shape.hpp"

#include <cmath>

#include "models/offload/plan/plan_memory.hpp"

namespace twill::models::offload {

offload_model model_shape(const model_spec& s, gpu::dtype kv_type, const packed_weights& packed) {
  offload_model m;
  m.n_layers = s.n_layers;
  m.hidden_size = s.hidden_size;
  m.q_size = static_cast<std::int32_t>(s.q_size());
  m.kv_size = static_cast<std::int32_t>(s.kv_size());
  m.mlp_size = s.mlp_size;
  m.vocab_size = s.vocab_size;
  m.gated_mlp = s.gated_mlp;
  m.biases = s.mlp_bias != bias_rule::none;
  m.kv_bytes_per_value = static_cast<double>(gpu::size_of(kv_type));
  const double shaped = layer_weight_bytes(m) * s.n_layers;
  if (std::abs(static_cast<double>(packed.layers) / shaped - 1) > 0.02) {
    m.layer_bytes = static_cast<double>(packed.layers) / s.n_layers;
    m.outer_bytes = static_cast<double>(packed.tables + packed.small);
  }
  return m;
}

} // namespace twill::models::offload
