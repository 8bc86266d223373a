// weight_placement: stores packed weights in their tiers: permanently in device memory, or in host
// memory or on disk, from where they are streamed to the device.
//
// While a model is loaded, the device's thread adds one transfer group (a layer, a part of the
// head) at a time, so that at most one group is in memory twice. Afterwards the placement does not
// change, and any thread may fetch groups. It owns the bytes. A full tier fails with out_of_memory
// or file_unwritable.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gpu/copy_stream.hpp"
#include "gpu/device.hpp"
#include "gpu/linear/linear.hpp"
#include "models/errc.hpp"
#include "models/offload/options.hpp"
#include "models/offload/streams/io_pool.hpp"
#include "models/offload/streams/link_pacer.hpp"
#include "models/offload/streams/read_checks.hpp"
#include "models/offload/streams/tier_resources.hpp"
#include "models/offload/streams/weight_layout.hpp"
#include "models/offload/tiers.hpp"

namespace twill::models::offload {

/// Some row panels (16 rows each) of a matrix that was packed on the host, and the packed_matrix
/// through which ops will read them on the device.
struct weight_segment {
  const gpu::packed_matrix* source = nullptr;
  std::int64_t first_panel = 0;
  gpu::packed_matrix* target = nullptr; ///< must outlive the placement; may be equal to `source`
};

/// Where the bytes of a segment are stored.
struct weight_location {
  tier where = tier::device;
  gpu::packed_matrix* target = nullptr;
  std::int64_t staging_offset = 0;     ///< host, disk: offset in the group's staging buffer
  const unsigned char* host = nullptr; ///< host: the bytes
  std::int64_t store_offset = 0;       ///< disk: any multiple of 64
};

/// Parts of matrices (weight_segment) that are transferred together into one staging buffer. The
/// buffer has the bytes from the disk first and then, aligned, those from host memory.
struct transfer_group {
  std::vector<weight_location> locations;
  std::int64_t disk_bytes = 0; ///< a multiple of store_alignment
  std::int64_t host_bytes = 0;
  std::int64_t store_offset = 0;
  std::vector<std::uint64_t> sums; ///< one per transfer_bytes of the disk part
  mutable read_checks checks; ///< of the disk part; no lock is needed, because a group is never
                              ///< transferred twice at once
  gpu::host_buffer host;

  std::int64_t staging_bytes() const { return staging_bytes_of(disk_bytes, host_bytes); }
};

class weight_placement {
public:
  /// The placement takes the host memory for its weights from the budget `host`, at most
  /// `options.host_bytes`, and returns it to the budget in its destructor.
  weight_placement(gpu::device& dev, disk_store* store, tier_budget& host,
                   const offload_options& options, link_pacer& link)
      : dev_(dev), store_(store), host_(host), most_host_(options.host_bytes),
        verify_every_(options.verify_every), link_(link), pin_host_(options.pin_host) {}
  weight_placement(const weight_placement&) = delete;
  weight_placement& operator=(const weight_placement&) = delete;
  ~weight_placement() { host_.give_back(on_host_); }

  /// Adds a transfer group of parts of matrices, each with its tier. The source of each part must
  /// have its bytes in host memory. Parts in the device tier are copied to the device at once.
  /// Returns the group's number.
  result<std::int32_t> add(const std::vector<weight_segment>& segments,
                           const std::vector<tier>& where);

  const transfer_group& group(std::int32_t number) const {
    return *groups_[static_cast<std::size_t>(number)];
  }
  std::int32_t size() const { return static_cast<std::int32_t>(groups_.size()); }

  /// The number of transfers that bring a group to the device.
  std::int32_t transfers(std::int32_t group) const;
  bool from_disk(std::int32_t group, std::int32_t n) const;
  /// Runs the n-th transfer of a group into its staging buffer. Any thread.
  result<nothing> transfer(std::int32_t group, std::int32_t n, void* buffer,
                           io_worker& worker) const;
  /// Announces to the disk store that a group will be read soon.
  void prefetch(std::int32_t group) const;

  disk_store* store() const { return store_; }
  link_pacer& link() const { return link_; }

private:
  result<nothing> keep_on_device(const weight_segment& p, weight_location& at);
  result<nothing> take_host(std::int64_t bytes);
  result<nothing> write_to_disk(transfer_group& group, const gpu::host_buffer& image);

  gpu::device& dev_;
  disk_store* store_;
  tier_budget& host_;
  std::int64_t most_host_;    ///< bytes; 0: as many as the budget has
  std::int32_t verify_every_; ///< see read_checks
  link_pacer& link_;
  bool pin_host_;
  std::int64_t store_end_ = 0;
  std::int64_t on_host_ = 0; ///< bytes
  std::vector<std::unique_ptr<transfer_group>> groups_;
  std::vector<gpu::buffer> device_images_;
};

} // namespace twill::models::offload
