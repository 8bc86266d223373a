// offload_options: which share of a decoder's weights is kept in which tier (device, host memory or
// disk), and how they are transferred to the device. Plain values.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "models/errc.hpp"
#include "models/offload/streams/disk_store.hpp"
#include "models/offload/streams/tier_resources.hpp"

namespace twill::models::offload {

enum class tier : std::uint8_t { device, host, disk };

const char* name_of(tier t);

/// Percent of the bytes that are kept on the device and in host memory; the rest is kept on disk.
struct shares {
  std::int32_t device = 100;
  std::int32_t host = 0;
};

struct offload_options {
  shares weights;
  std::string dir; ///< folder of the disk tier's file; empty: the system's temporary folder
  bool direct_reads = true; ///< true: reads bypass the page cache; false: they use it, with
                            ///< read-ahead
  /// Size of the device buffers for streamed weights (streams/weight_ring.hpp), in whole layers.
  /// With 1 no layer is fetched ahead of its use.
  std::int32_t ring_layers = 3;
  /// If true, attention and MLP of a layer are transferred separately, as if each were a layer, so
  /// that the buffers are smaller.
  bool sep_layer = false;
  bool pin_host = true; ///< use pinned memory for the host tier if the device has memory of its own
  /// Number of device buffers for the streamed KV of an offline job. Each holds the KV of one
  /// micro-batch and one layer. While the output head is computed at the end of a round
  /// (plan/block_schedule.hpp), the disk is busy only with loads into these buffers. With 1 no KV
  /// is loaded ahead of its use.
  std::int32_t kv_buffers = 12;
  std::int32_t io_threads = 4;      ///< most transfers that run at the same time
  std::int32_t verify_every = 4;    ///< one in this many reads is compared with its checksum
  double link_bytes_per_second = 0; ///< above 0: copies to the device take at least this long
  std::int64_t host_bytes = 0; ///< limit of the host tier; 0: the host memory that is available
  /// The I/O threads, the file and the budget of host memory for what is kept in host memory or on
  /// disk. They may be shared with other users. Null: the decoder creates its own.
  std::shared_ptr<tier_resources> resources;
  /// Opens a store in place of a file in `dir`; for tests.
  store_opener open_store;

  bool streams_weights() const { return weights.device < 100; }
};

} // namespace twill::models::offload
