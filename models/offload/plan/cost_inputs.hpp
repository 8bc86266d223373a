// cost_inputs: the inputs of the cost model: the shape of the model, the machine, the workload and
// the policy. Plain values without logic beyond sums; bytes and seconds are doubles, because plans
// multiply and divide them by rates.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "models/offload/plan/block_schedule.hpp"

namespace twill::models::offload {

/// The shape of a decoder. Bytes per value include group scales: 0.5625 for 4 bits in groups of 64
/// that have an f16 scale and minimum each.
struct offload_model {
  std::int32_t n_layers = 0;
  std::int32_t hidden_size = 0;
  std::int32_t q_size = 0;  ///< n_heads * head_dim
  std::int32_t kv_size = 0; ///< n_kv_heads * head_dim
  std::int32_t mlp_size = 0;
  std::int32_t vocab_size = 0;
  bool gated_mlp = false;
  bool biases = true; ///< every matrix and every norm has a bias
  double weight_bytes_per_value = 2;
  double kv_bytes_per_value = 2;
  double kv_packed_bytes_per_value =
      0; ///< bytes per value of KV off the device if it is packed there; 0: it is not packed
  double hidden_bytes_per_value = 2;
  double layer_bytes = 0; ///< weights of one layer if known; 0: computed from the shape
  double outer_bytes = 0; ///< embedding, last norm and head if known; 0: computed from the shape
};

/// The measured time of a layer for a step of `rows` tokens, with its weights on the device and
/// without attention to earlier positions.
struct measured_rows {
  double rows = 0;
  double seconds = 0;
};

/// Rates are those that programs reach, not a vendor's figures; all must be above 0 unless a
/// comment below gives 0 a meaning.
struct machine_description {
  std::string name;
  double device_bytes = 0; ///< memory of the device that a plan may use; host_bytes and disk_bytes
                           ///< are those of the other tiers
  double host_bytes = 0;
  double disk_bytes = 0;
  double device_flops = 1; ///< floating-point operations per second of matrix products with many
                           ///< rows
  double device_bytes_per_s = 1;    ///< rate at which kernels read weights
  double device_kv_bytes_per_s = 0; ///< rate at which attention reads KV; 0: as fast as weights
  double host_flops = 1; ///< floating-point operations per second of attention on the host
  double host_bytes_per_s = 1;
  double h2d_bytes_per_s = 1;
  double d2h_bytes_per_s = 1;
  double disk_read_bytes_per_s = 1;
  double disk_write_bytes_per_s = 1;
  double unpacked_values_per_s = 0; ///< values per second when KV is packed or unpacked; 0: this
                                    ///< takes no time
  double task_overhead_s = 0;       ///< launches and bookkeeping of one task
  /// Measured times in ascending order of rows. If there are any, they replace device_flops and
  /// task_overhead_s.
  std::vector<measured_rows> layer;
  bool one_processor = false; ///< device and host compute run on the same cores
  /// Used if one_processor is true: the shares of the device's compute time that a disk read, and a
  /// copy between host and device memory, take away while they run at full speed.
  double disk_read_device_share = 0;
  double copy_device_share = 0;
};

/// The shares of one kind of bytes that live on the device and on the host; the rest lives on disk.
struct tier_split {
  double device = 1;
  double host = 0;
  double disk() const { return std::max(1 - device - host, 0.0); }
  double away() const { return 1 - device; }
};

struct offload_policy {
  search_order order = search_order::zigzag;
  std::int32_t batch_size = 1; ///< sequences of a micro-batch
  std::int32_t n_batches = 1;  ///< micro-batches alive at once
  std::int32_t stagger = 1;    ///< diagonal only, see schedule_shape
  tier_split weights;
  tier_split kv;
  tier_split hidden;            ///< activations between tasks
  bool host_attention = false;  ///< decodes attend on the host to KV that is not on the device
  bool outer_resident = true;   ///< embedding and head stay on the device whatever `weights` says
  std::int32_t ring_layers = 2; ///< memory for streamed weights, in whole layers
  std::int32_t kv_buffers = 2;  ///< device buffers for streamed KV and activations of tasks

  /// The number of layers whose streamed parts fit in the memory of `ring_layers` whole layers.
  std::int32_t layers_in_ring() const {
    constexpr double least_away = 1e-3; // a smaller streamed share counts as none
    return static_cast<std::int32_t>(ring_layers / std::max(weights.away(), least_away) + 1e-6);
  }
};

struct offload_workload {
  std::int32_t prompt_len = 512;
  std::int32_t gen_len = 32;
  std::int64_t n_prompts = 0; ///< 0: one block, batch_size * n_batches
};

} // namespace twill::models::offload
