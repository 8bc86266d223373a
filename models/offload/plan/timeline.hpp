// timeline: records which resource was busy with which task, and when. Both the simulation of a
// plan and a real run produce these spans; tools/twill/offload/timeline_svg draws them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "models/offload/plan/block_schedule.hpp"

namespace twill::models::offload {

enum class offload_resource : std::uint8_t { device, host, h2d, d2h, disk_read, disk_write };
inline constexpr std::size_t n_offload_resources = 6;

constexpr const char* name_of(offload_resource resource) {
  constexpr std::array<const char*, n_offload_resources> names{
      "device", "host", "host to device", "device to host", "disk read", "disk write"};
  return names[static_cast<std::size_t>(resource)];
}

struct timeline_span {
  offload_resource resource = offload_resource::device;
  schedule_task at; ///< batch -1 stands for a layer's weights, which serve all micro-batches;
                    ///< `token` is then the round's number
  double start_s = 0;
  double end_s = 0;
};

} // namespace twill::models::offload
