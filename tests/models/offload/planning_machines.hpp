// Descriptions of machines and models for tests of offload planning.
#pragma once

#include "models/offload/plan/cost_inputs.hpp"

namespace twill::tests {

inline constexpr double gb = 1e9;
inline constexpr double gib_d = 1024.0 * 1024 * 1024;
inline constexpr double tera = 1e12;

/// Published OPT shapes: heads of 64 or 128 make q, k and v as wide as the model.
inline models::offload::offload_model opt(std::int32_t n_layers, std::int32_t width) {
  models::offload::offload_model m;
  m.n_layers = n_layers;
  m.hidden_size = m.q_size = m.kv_size = width;
  m.mlp_size = 4 * width;
  m.vocab_size = 50272;
  return m;
}

inline models::offload::offload_model opt_1_3b() {
  return opt(24, 2048);
}
inline models::offload::offload_model opt_30b() {
  return opt(48, 7168);
}
inline models::offload::offload_model opt_175b() {
  return opt(96, 12288);
}

/// Weights and KV in 4 bits, groups of 64 with an f16 scale and minimum.
inline models::offload::offload_model in_4_bits(models::offload::offload_model m) {
  m.weight_bytes_per_value = m.kv_bytes_per_value = 0.5 + 4.0 / 64;
  return m;
}

inline models::offload::offload_model mistral_7b() {
  models::offload::offload_model m = opt(32, 4096);
  m.kv_size = 1024;
  m.mlp_size = 14336;
  m.vocab_size = 32000;
  m.gated_mlp = true;
  m.biases = false;
  return m;
}

/// A small host whose "device" is a part of its own memory.
inline models::offload::machine_description small_host() {
  models::offload::machine_description on;
  on.name = "two cores and a disk";
  on.device_bytes = 1 * gib_d;
  on.host_bytes = 3 * gib_d;
  on.disk_bytes = 40 * gib_d;
  on.device_flops = on.host_flops = 0.15 * tera;
  on.device_bytes_per_s = on.host_bytes_per_s = 20 * gb;
  on.h2d_bytes_per_s = on.d2h_bytes_per_s = 8 * gb;
  on.disk_read_bytes_per_s = 1.5 * gb;
  on.disk_write_bytes_per_s = 0.8 * gb;
  on.task_overhead_s = 30e-6;
  on.one_processor = true;
  on.disk_read_device_share = 0.1;
  on.copy_device_share = 0.5;
  return on;
}

inline models::offload::machine_description a6000_pcie4() {
  models::offload::machine_description on;
  on.name = "A6000, PCIe 4";
  on.device_bytes = 44 * gib_d;
  on.host_bytes = 200 * gib_d;
  on.disk_bytes = 2000 * gib_d;
  on.device_flops = 100 * tera;
  on.device_bytes_per_s = 600 * gb;
  on.host_flops = 1 * tera;
  on.host_bytes_per_s = 100 * gb;
  on.h2d_bytes_per_s = on.d2h_bytes_per_s = 24 * gb;
  on.disk_read_bytes_per_s = 3 * gb;
  on.disk_write_bytes_per_s = 2 * gb;
  on.task_overhead_s = 50e-6;
  return on;
}

/// The T4 of the FlexGen paper (arXiv 2303.06865, section 6): 16 GB on the device, 208 GB of DRAM,
/// a disk of 2 GB/s read and 1 GB/s write. The speeds of PCIe, of products, and of attention on the
/// device (79 GFLOP/s at one operation per byte) and on the host (12.3) are those that FlexGen's
/// own cost model fitted (experimental/cost_model.py).
inline models::offload::machine_description t4_paper() {
  models::offload::machine_description on;
  on.name = "T4, the paper's links";
  on.device_bytes = 15 * gib_d;
  on.host_bytes = 204 * gib_d;
  on.disk_bytes = 1500 * gib_d;
  on.device_flops = 21.24 * tera;
  on.device_bytes_per_s = 79 * gb;
  on.host_flops = 0.0123 * tera;
  on.host_bytes_per_s = 12.3 * gb;
  on.h2d_bytes_per_s = 12.89 * gib_d;
  on.d2h_bytes_per_s = 4.82 * gib_d;
  on.disk_read_bytes_per_s = 2 * gb;
  on.disk_write_bytes_per_s = 1 * gb;
  on.task_overhead_s = 300e-6;
  return on;
}

} // namespace twill::tests
