// weight_homes: where the images of weights live: device memory for good, or host memory and disk,
// from where they travel.
//
// Filled while a model is loaded, on the device's thread, one unit (a layer, a part of the head) at
// a time, so that no more than one unit has to be in memory twice. Read only afterwards; any thread
// may fetch. Owns the homes. A tier that is full is out_of_memory or file_unwritable.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gpu/copy_stream.hpp"
#include "gpu/device.hpp"
#include "gpu/linear/packed_matrix.hpp"
#include "models/errc.hpp"
#include "models/offload/io_pool.hpp"
#include "models/offload/link_pacer.hpp"
#include "models/offload/options.hpp"
#include "models/offload/read_checks.hpp"
#include "models/offload/tiers.hpp"
#include "models/offload/weight_layout.hpp"

namespace twill::models::offload {

/// Row blocks of a matrix that is packed on the host, and the matrix that will read them.
struct piece {
  const gpu::packed_matrix* source = nullptr;
  std::int64_t first_block = 0;
  gpu::packed_matrix* target = nullptr; ///< outlives the homes; may be the source
};

/// Where the image of a piece ended up.
struct home {
  tier where = tier::device;
  gpu::packed_matrix* target = nullptr;
  std::int64_t slot_offset = 0;        ///< host, disk: in the unit's device slot
  const unsigned char* host = nullptr; ///< host: its bytes
  std::int64_t store_offset = 0;       ///< disk: its bytes, at any multiple of 64
};

/// Pieces that travel together. A slot holds the disk part, then, aligned, the host part.
struct weight_unit {
  std::vector<home> homes;
  std::int64_t disk_bytes = 0; ///< of the slot, a multiple of store_alignment
  std::int64_t host_bytes = 0;
  std::int64_t store_offset = 0;
  std::vector<std::uint64_t> sums; ///< one per transfer_bytes of the disk part
  mutable read_checks checks;      ///< of the same; a unit is on its way once at a time
  gpu::host_buffer host;

  std::int64_t slot_bytes() const { return slot_bytes_of(disk_bytes, host_bytes); }
};

class weight_homes {
public:
  weight_homes(gpu::device& dev, block_store* store, std::int64_t host_budget,
               std::int32_t verify_every, link_pacer& link, bool pin_host = true)
      : dev_(dev), store_(store), host_budget_(host_budget), verify_every_(verify_every),
        link_(link), pin_host_(pin_host) {}

  /// The pieces' sources must have their bytes on the host; those at home on the device are placed
  /// at once. Returns the unit's number.
  result<std::int32_t> add(const std::vector<piece>& pieces, const std::vector<tier>& where);

  const weight_unit& unit(std::int32_t number) const {
    return *units_[static_cast<std::size_t>(number)];
  }
  std::int32_t size() const { return static_cast<std::int32_t>(units_.size()); }

  /// How many transfers bring a unit to the device.
  std::int32_t transfers(std::int32_t unit) const;
  bool from_disk(std::int32_t unit, std::int32_t n) const;
  /// The n-th of them, into the slot. Any thread.
  result<nothing> transfer(std::int32_t unit, std::int32_t n, void* slot, io_worker& worker) const;
  /// Tells the store that a unit is next.
  void expect(std::int32_t unit) const;

  block_store* store() const { return store_; }
  link_pacer& link() const { return link_; }

private:
  result<nothing> keep_on_device(const piece& p, home& at);
  result<nothing> write_to_disk(weight_unit& unit, const gpu::host_buffer& image);

  gpu::device& dev_;
  block_store* store_;
  std::int64_t host_budget_;
  std::int32_t verify_every_; ///< see read_checks
  link_pacer& link_;
  bool pin_host_;
  std::int64_t store_end_ = 0;
  std::int64_t on_host_ = 0; ///< bytes
  std::vector<std::unique_ptr<weight_unit>> units_;
  std::vector<gpu::buffer> device_images_;
};

} // namespace twill::models::offload
