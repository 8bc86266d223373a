#include "tools/twill/offload/draw_timeline.hpp"

#include <algorithm>
#include <fstream>
#include <vector>

#include "tools/common/http_client.hpp"
#include "tools/twill/offload/timeline_svg.hpp"

namespace twill::tools {
namespace {

models::offload::offload_resource resource_of(models::offload::lane where) {
  using models::offload::offload_resource;
  switch (where) {
  case models::offload::lane::compute:
    return offload_resource::device;
  case models::offload::lane::disk_read:
    return offload_resource::disk_read;
  case models::offload::lane::disk_write:
    return offload_resource::disk_write;
  case models::offload::lane::host_to_device:
    return offload_resource::h2d;
  case models::offload::lane::device_to_host:
    break;
  }
  return offload_resource::d2h;
}

void write(const std::string& file, const std::string& title,
           std::span<const models::offload::timeline_span> spans) {
  timeline_layout layout;
  layout.title = title;
  std::ofstream out(file);
  out << timeline_svg(spans, layout);
  if (!out.flush())
    throw client_error("`--timeline` must be a file that can be written, got " + file);
}

} // namespace

void draw_run(const std::string& file, const std::string& title,
              const models::offload::span_recorder& recorded) {
  const auto all = recorded.spans();
  double first = all.empty() ? 0 : all.front().begin_seconds; // time 0 is the first span of the
                                                              // run; loading is not included
  for (const models::offload::recorded_span& s : all)
    first = std::min(first, s.begin_seconds);
  std::vector<models::offload::timeline_span> spans;
  for (const models::offload::recorded_span& s : all)
    spans.push_back({resource_of(s.where),
                     {0, s.layer_or_head_part, s.micro_batch},
                     s.begin_seconds - first,
                     s.end_seconds - first});
  write(file, title, spans);
}

void draw_simulation(const std::string& file, const std::string& title,
                     std::span<const models::offload::timeline_span> spans) {
  write(file, title + ", simulated", spans);
}

} // namespace twill::tools
