// What a decoder is told about offloading: which share of its weights lives in which tier, and how
// they travel. Plain values.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "models/errc.hpp"
#include "models/offload/streams/disk_store.hpp"
#include "models/offload/streams/tier_resources.hpp"

namespace twill::models::offload {

enum class tier : std::uint8_t { device, host, disk };

const char* name_of(tier t);

/// Percent of the bytes that live in each tier; the rest lives on disk.
struct shares {
  std::int32_t device = 100;
  std::int32_t host = 0;
};

struct offload_options {
  shares weights;
  std::string dir;          ///< of the disk tier's file; empty: the system's temporary folder
  bool direct_reads = true; ///< past the page cache, or through it with read-ahead
  /// Device memory for streamed weights, in whole layers. With 1 nothing is fetched ahead.
  std::int32_t ring_layers = 3;
  /// Attention and MLP of a layer travel apart, as if they were layers, in smaller buffers.
  bool sep_layer = false;
  bool pin_host = true; ///< pinned memory for the host tier where the device is another chip
  /// Device buffers for the streamed KV of an offline job; each holds the segment of one
  /// micro-batch and layer. While the head of a round is computed only loads into these keep the
  /// disk busy. With 1 nothing is loaded ahead.
  std::int32_t kv_buffers = 12;
  std::int32_t io_threads = 4;      ///< transfers under way at once
  std::int32_t verify_every = 4;    ///< one read in so many is compared with its checksum
  double link_bytes_per_second = 0; ///< above 0: copies to the device take at least this long
  std::int64_t host_bytes = 0;      ///< cap of the host tier; 0: what the machine has available
  /// Threads, store and budget of the tiers off the device; null: some of one's own.
  std::shared_ptr<tier_resources> resources;
  /// Opens a store in place of a file in `dir`; for tests.
  std::function<result<std::unique_ptr<disk_store>>()> open_store;

  bool streams_weights() const { return weights.device < 100; }
};

} // namespace twill::models::offload
