#include "models/offload/streams/weight_placement.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "config/base/units.hpp"
#include "models/decoder/gpu_error.hpp"
#include "models/offload/streams/checksum.hpp"

namespace twill::models::offload {
namespace {

std::int64_t image_bytes(const weight_segment& p) {
  return p.target->layout().bytes(p.target->row_panels());
}

std::int64_t parts_of(std::int64_t bytes) {
  return (bytes + transfer_bytes - 1) / transfer_bytes;
}

} // namespace

result<nothing> weight_placement::keep_on_device(const weight_segment& p, weight_location& at) {
  const auto bytes = static_cast<std::size_t>(image_bytes(p));
  auto staged = gpu::host_buffer::allocate(bytes, "weights");
  if (!staged.ok()) return from_gpu(staged.error());
  p.source->save_image(p.first_panel, p.target->row_panels(), staged.value().data());
  auto memory = dev_.allocate(bytes, "weights kept on the device", gpu::page_hint::filled_at_once);
  if (!memory.ok()) return from_gpu(memory.error());
  dev_.upload(memory.value().data(), staged.value().data(), bytes);
  at.target->place(memory.value().data());
  device_images_.push_back(std::move(memory).value());
  return nothing{};
}

result<nothing> weight_placement::write_to_disk(transfer_group& group,
                                                const gpu::host_buffer& image) {
  group.store_offset = store_end_;
  if (auto written = store_->write(store_end_, image.data(), group.disk_bytes); !written.ok())
    return failure{written.code(), written.detail() + " (" + format_bytes(store_end_) +
                                       " of weights are there already)"};
  store_end_ += group.disk_bytes;
  group.checks = read_checks(verify_every_);
  for (std::int64_t at = 0; at < group.disk_bytes; at += transfer_bytes) {
    group.sums.push_back(
        checksum(image.data() + at, std::min(transfer_bytes, group.disk_bytes - at)));
    group.checks.add_stretch();
  }
  return nothing{};
}

result<nothing> weight_placement::take_host(std::int64_t bytes) {
  const std::int64_t wanted = on_host_ + bytes;
  const std::int64_t most = most_host_ > 0 ? most_host_ : on_host_ + host_.free();
  if (wanted > most || !host_.take(bytes))
    return failure{errc::out_of_memory, "the host tier must hold " + format_bytes(wanted) +
                                            " of weights, but may take " +
                                            format_bytes(std::min(most, on_host_ + host_.free()))};
  on_host_ = wanted;
  return nothing{};
}

result<std::int32_t> weight_placement::add(const std::vector<weight_segment>& segments,
                                           const std::vector<tier>& where) {
  auto group = std::make_unique<transfer_group>();
  std::int64_t disk = 0, host = 0;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    weight_location at;
    at.where = where[i];
    at.target = segments[i].target;
    std::int64_t& end = where[i] == tier::disk ? disk : host;
    at.staging_offset = end;
    if (where[i] == tier::device) {
      if (auto kept = keep_on_device(segments[i], at); !kept.ok()) return kept.error();
    } else {
      end += image_bytes(segments[i]);
    }
    group->locations.push_back(at);
  }
  group->disk_bytes = store_aligned(disk);
  group->host_bytes = host;
  if (auto taken = take_host(host); !taken.ok()) return taken.error();
  auto host_part =
      gpu::host_buffer::allocate(static_cast<std::size_t>(host), "weights on the host", pin_host_);
  if (!host_part.ok()) return from_gpu(host_part.error());
  group->host = std::move(host_part).value();
  auto disk_part =
      gpu::host_buffer::allocate(static_cast<std::size_t>(group->disk_bytes), "weights to write");
  if (!disk_part.ok()) return from_gpu(disk_part.error());

  for (std::size_t i = 0; i < segments.size(); ++i) {
    weight_location& at = group->locations[i];
    if (at.where == tier::device) continue;
    const bool on_disk = at.where == tier::disk;
    unsigned char* to = (on_disk ? disk_part.value() : group->host).data() + at.staging_offset;
    segments[i].source->save_image(segments[i].first_panel, at.target->row_panels(), to);
    at.host = on_disk ? nullptr : to;
    at.store_offset = store_end_ + at.staging_offset;
    if (!on_disk) at.staging_offset += group->disk_bytes;
  }
  if (group->disk_bytes > 0)
    if (auto written = write_to_disk(*group, disk_part.value()); !written.ok())
      return written.error();
  groups_.push_back(std::move(group));
  return size() - 1;
}

std::int32_t weight_placement::transfers(std::int32_t number) const {
  const transfer_group& u = group(number);
  return static_cast<std::int32_t>(parts_of(u.disk_bytes) + parts_of(u.host_bytes));
}

bool weight_placement::from_disk(std::int32_t number, std::int32_t n) const {
  return n < parts_of(group(number).disk_bytes);
}

result<nothing> weight_placement::transfer(std::int32_t number, std::int32_t n, void* buffer,
                                           io_worker& worker) const {
  const transfer_group& u = group(number);
  auto* to = static_cast<unsigned char*>(buffer);
  const auto disk_parts = parts_of(u.disk_bytes);
  if (n >= disk_parts) {
    const std::int64_t at = (n - disk_parts) * transfer_bytes;
    const std::int64_t bytes = std::min(transfer_bytes, u.host_bytes - at);
    const auto copied = worker.copies.begin_to_device(to + u.disk_bytes + at, u.host.data() + at,
                                                      static_cast<std::size_t>(bytes));
    link_.pass(bytes);
    return from_gpu(copied);
  }
  const std::int64_t at = n * transfer_bytes;
  const std::int64_t bytes = std::min(transfer_bytes, u.disk_bytes - at);
  const bool straight = gpu::device_memory_is_host();
  unsigned char* read_to = straight ? to + at : worker.bounce.data();
  if (auto read = store_->read(u.store_offset + at, read_to, bytes); !read.ok()) return read;
  const auto stretch = static_cast<std::size_t>(n);
  if (u.checks.due(stretch) && checksum(read_to, bytes) != u.sums[stretch])
    return failure{errc::bad_format, "offload file (" + store_->describe() +
                                         "): " + format_bytes(bytes) + " at " +
                                         std::to_string(u.store_offset + at) +
                                         " are not what was written there (checksum)"};
  if (!straight) {
    const auto copied = worker.copies.to_device(to + at, read_to, static_cast<std::size_t>(bytes));
    if (!copied.ok()) return from_gpu(copied.error());
  }
  link_.pass(bytes);
  return nothing{};
}

void weight_placement::prefetch(std::int32_t number) const {
  const transfer_group& u = group(number);
  if (u.disk_bytes > 0) store_->prefetch(u.store_offset, u.disk_bytes);
}

} // namespace twill::models::offload
