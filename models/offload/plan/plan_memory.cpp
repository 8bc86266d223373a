#include "models/offload/plan/plan_memory.hpp"

#include <cstdio>

#include "config/base/units.hpp"

namespace twill::models::offload {
namespace {

double as_double(std::int64_t n) {
  return static_cast<double>(n);
}

tier_bytes share(const tier_split& split, double bytes) {
  return {split.device * bytes, split.host * bytes, split.disk() * bytes};
}

} // namespace

double layer_weight_bytes(const offload_model& m) {
  if (m.layer_bytes > 0) return m.layer_bytes;
  const double h = m.hidden_size, q = m.q_size, kv = m.kv_size, mlp = m.mlp_size;
  const double matrices = h * (q + 2 * kv) + q * h + (m.gated_mlp ? 3 : 2) * h * mlp;
  const double biases = m.biases ? 3 * h + mlp : 0; // FlexGen's count
  const double norms = m.biases ? 4 * h : 2 * h;
  return m.weight_bytes_per_value * (matrices + biases + norms);
}

double outer_weight_bytes(const offload_model& m) {
  if (m.outer_bytes > 0) return m.outer_bytes;
  return m.weight_bytes_per_value * as_double(m.vocab_size) * (m.hidden_size + 1.0);
}

double kv_bytes_per_position(const offload_model& m) {
  return 2 * m.kv_bytes_per_value * m.kv_size;
}

double kv_backing_bytes_per_position(const offload_model& m) {
  const double packed = m.kv_packed_bytes_per_value;
  return packed > 0 ? 2 * packed * m.kv_size : kv_bytes_per_position(m);
}

offload_sizes sizes_of(const offload_model& m, std::int32_t prompt_len, std::int32_t gen_len,
                       std::int64_t n_prompts) {
  const double tokens = as_double(n_prompts) * (as_double(prompt_len) + gen_len);
  return {m.n_layers * layer_weight_bytes(m) + outer_weight_bytes(m),
          m.n_layers * kv_bytes_per_position(m) * tokens,
          m.hidden_bytes_per_value * m.hidden_size * tokens};
}

std::string gb_text(double bytes) {
  char text[64];
  std::snprintf(text, sizeof text, "%.3f GB", bytes / static_cast<double>(gib));
  return text;
}

std::string text_of(const offload_sizes& sizes) {
  return "model size: " + gb_text(sizes.model_bytes) +
         "\tcache size: " + gb_text(sizes.cache_bytes) +
         "\thidden size (p): " + gb_text(sizes.hidden_bytes);
}

tier_bytes memory_projection::peak() const {
  tier_bytes sum;
  for (const tier_bytes* part : {&weights, &kv, &hidden, &buffers}) {
    sum.device += part->device;
    sum.host += part->host;
    sum.disk += part->disk;
  }
  return sum;
}

memory_projection project_memory(const offload_model& m, const offload_workload& work,
                                 const offload_policy& policy, const schedule_load& load) {
  memory_projection out;
  const double layer = layer_weight_bytes(m);
  const double outer = outer_weight_bytes(m);
  out.weights = share(policy.weights, m.n_layers * layer + (policy.outer_resident ? 0 : outer));
  if (policy.outer_resident) out.weights.device += outer;

  const double kv_position = kv_bytes_per_position(m) * policy.batch_size;
  const double kv_home = kv_backing_bytes_per_position(m) * policy.batch_size;
  out.kv = share(policy.kv, m.n_layers * kv_home * load.peak_kv_positions);
  out.kv.device *= kv_position / kv_home;
  const double hidden_token = m.hidden_bytes_per_value * m.hidden_size * policy.batch_size;
  out.hidden = share(policy.hidden, hidden_token * load.peak_hidden_tokens);

  // Weights, KV and activations that are kept off the device are copied to staging buffers on the
  // device, weights by layers, KV and activations by tasks of the schedule. Bytes from disk need
  // buffers on the host as well. KV that attention reads on the host needs no buffer on the device.
  const double longest = work.prompt_len + work.gen_len - 1.0;
  const double task_kv = (kv_position + (m.kv_packed_bytes_per_value > 0 ? kv_home : 0)) * longest;
  const double task_hidden = hidden_token * work.prompt_len;
  const double kv_to_device = policy.host_attention ? 0 : policy.kv.away();
  out.buffers.device =
      (policy.weights.away() > 0 ? policy.ring_layers * layer : 0) +
      policy.kv_buffers * (kv_to_device * task_kv + policy.hidden.away() * task_hidden);
  out.buffers.host = policy.ring_layers * policy.weights.disk() * layer +
                     policy.kv_buffers * (policy.kv.disk() * kv_home * longest +
                                          policy.hidden.disk() * task_hidden);
  return out;
}

} // namespace twill::models::offload
