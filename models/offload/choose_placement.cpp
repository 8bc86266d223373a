#include "models/offload/choose_placement.hpp"

#include <algorithm>

#include "config/base/units.hpp"

namespace twill::models::offload {
namespace {

/// Bytes of one buffer of the ring: a layer, or the larger part of one.
std::int64_t slot_bytes(const placement_room& room) {
  const packed_weights& w = room.weights;
  return (room.sep_layer ? std::max(w.mlps, w.layers - w.mlps) : w.layers) /
         std::max(room.n_layers, 1);
}

std::string slots_of(std::int32_t ring_layers, const placement_room& room) {
  return std::to_string(ring_layers) + (room.sep_layer ? " parts of layers" : " layers");
}

/// The whole per cent of `whole` that fit into `room`.
std::int32_t percent_of(std::int64_t room, std::int64_t whole) {
  if (whole <= 0) return 100;
  return static_cast<std::int32_t>(
      std::clamp<double>(100.0 * static_cast<double>(room) / static_cast<double>(whole), 0, 100));
}

} // namespace

std::int64_t least_device_bytes(const placement_room& room, std::int32_t ring_layers) {
  // 4 MiB cover the embedding cache and the rounding to pages.
  return room.weights.small + ring_layers * slot_bytes(room) + 4 * mib;
}

result<offload_options> choose_placement(const config::options& options,
                                         const placement_room& room) {
  const config::offload_options& o = options.offload;
  offload_options chosen;
  chosen.dir = o.dir;
  chosen.direct_reads = o.reads == "direct";
  chosen.ring_layers = o.ring_layers;
  chosen.sep_layer = o.sep_layer;
  chosen.pin_host = o.pin_weight;
  chosen.kv_buffers = o.kv_buffers;
  chosen.io_threads = o.io_threads;
  chosen.verify_every = o.verify_every;
  chosen.link_bytes_per_second = 1e9 * options.device.link_gbps;
  chosen.host_bytes = o.host_memory_bytes;
  if (o.device_percent >= 0 && o.host_percent >= 0 && o.device_percent + o.host_percent > 100)
    return failure{errc::bad_option,
                   "`offload.device_percent` + `offload.host_percent` must be at most 100, got " +
                       std::to_string(o.device_percent) + " + " + std::to_string(o.host_percent)};
  std::int32_t device = o.device_percent;
  if (device < 0) device = room.weights.all() <= room.device_bytes ? 100 : -1;
  if (device < 100) {
    const std::int64_t least = least_device_bytes(room, o.ring_layers);
    if (least > room.device_bytes)
      return failure{errc::out_of_memory,
                     "`device.memory` must leave " + format_bytes(least) +
                         " for weights on their way (" + slots_of(o.ring_layers, room) + " of " +
                         format_bytes(slot_bytes(room)) +
                         ", `offload.ring_layers`)"
                         " and what always stays, got " +
                         format_bytes(std::max<std::int64_t>(room.device_bytes, 0))};
    if (device < 0)
      device = std::min(99, percent_of(room.device_bytes - least, room.weights.matrices()));
  }
  chosen.weights.device = device;
  chosen.weights.host =
      o.host_percent >= 0
          ? std::min(o.host_percent, 100 - device)
          : std::min(100 - device, percent_of(room.host_bytes, room.weights.matrices()));
  return chosen;
}

std::string describe(const offload_options& chosen, const placement_room& room) {
  const std::int32_t disk = 100 - chosen.weights.device - chosen.weights.host;
  std::string text = "weights " + format_bytes(room.weights.matrices()) + ": " +
                     std::to_string(chosen.weights.device) + " % device, " +
                     std::to_string(chosen.weights.host) + " % host, " + std::to_string(disk) +
                     " % disk";
  if (disk > 0)
    text += " (" + (chosen.dir.empty() ? std::string("temporary folder") : chosen.dir) +
            (chosen.direct_reads ? ", direct reads)" : ", reads through the page cache)");
  if (chosen.weights.device < 100)
    text += ", ring of " + slots_of(chosen.ring_layers, room) + " (" +
            format_bytes(chosen.ring_layers * slot_bytes(room)) + ")";
  if (chosen.link_bytes_per_second > 0)
    text += ", simulated link of " +
            std::to_string(static_cast<long>(chosen.link_bytes_per_second / 1e9)) + " GB/s";
  return text;
}

} // namespace twill::models::offload
