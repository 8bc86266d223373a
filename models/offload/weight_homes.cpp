#include "models/offload/weight_homes.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "config/base/units.hpp"
#include "models/decoder/gpu_error.hpp"
#include "models/offload/checksum.hpp"

namespace twill::models::offload {
namespace {

std::int64_t image_bytes(const piece& p) {
  return p.target->layout().bytes(p.target->row_panels());
}

std::int64_t parts_of(std::int64_t bytes) {
  return (bytes + transfer_bytes - 1) / transfer_bytes;
}

} // namespace

result<nothing> weight_homes::keep_on_device(const piece& p, home& at) {
  const auto bytes = static_cast<std::size_t>(image_bytes(p));
  auto staged = gpu::host_buffer::allocate(bytes, "weights");
  if (!staged.ok()) return from_gpu(staged.error());
  p.source->save_image(p.first_block, p.target->row_panels(), staged.value().data());
  auto memory = dev_.allocate(bytes, "weights kept on the device", gpu::page_hint::filled_at_once);
  if (!memory.ok()) return from_gpu(memory.error());
  dev_.upload(memory.value().data(), staged.value().data(), bytes);
  at.target->place(memory.value().data());
  device_images_.push_back(std::move(memory).value());
  return nothing{};
}

result<nothing> weight_homes::write_to_disk(weight_unit& unit, const gpu::host_buffer& image) {
  unit.store_offset = store_end_;
  if (auto written = store_->write(store_end_, image.data(), unit.disk_bytes); !written.ok())
    return failure{written.code(), written.detail() + " (" + format_bytes(store_end_) +
                                       " of weights are there already)"};
  store_end_ += unit.disk_bytes;
  unit.checks = read_checks(verify_every_);
  for (std::int64_t at = 0; at < unit.disk_bytes; at += transfer_bytes) {
    unit.sums.push_back(
        checksum(image.data() + at, std::min(transfer_bytes, unit.disk_bytes - at)));
    unit.checks.add_stretch();
  }
  return nothing{};
}

result<std::int32_t> weight_homes::add(const std::vector<piece>& pieces,
                                       const std::vector<tier>& where) {
  auto unit = std::make_unique<weight_unit>();
  std::int64_t disk = 0, host = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    home at;
    at.where = where[i];
    at.target = pieces[i].target;
    std::int64_t& end = where[i] == tier::disk ? disk : host;
    at.slot_offset = end;
    if (where[i] == tier::device) {
      if (auto kept = keep_on_device(pieces[i], at); !kept.ok()) return kept.error();
    } else {
      end += image_bytes(pieces[i]);
    }
    unit->homes.push_back(at);
  }
  unit->disk_bytes = store_aligned(disk);
  unit->host_bytes = host;
  if (on_host_ + host > host_budget_)
    return failure{errc::out_of_memory, "the host tier must hold " + format_bytes(on_host_ + host) +
                                            " of weights, but may take " +
                                            format_bytes(host_budget_)};
  auto host_part =
      gpu::host_buffer::allocate(static_cast<std::size_t>(host), "weights on the host", pin_host_);
  if (!host_part.ok()) return from_gpu(host_part.error());
  unit->host = std::move(host_part).value();
  auto disk_part =
      gpu::host_buffer::allocate(static_cast<std::size_t>(unit->disk_bytes), "weights to write");
  if (!disk_part.ok()) return from_gpu(disk_part.error());

  for (std::size_t i = 0; i < pieces.size(); ++i) {
    home& at = unit->homes[i];
    if (at.where == tier::device) continue;
    const bool on_disk = at.where == tier::disk;
    unsigned char* to = (on_disk ? disk_part.value() : unit->host).data() + at.slot_offset;
    pieces[i].source->save_image(pieces[i].first_block, at.target->row_panels(), to);
    at.host = on_disk ? nullptr : to;
    at.store_offset = store_end_ + at.slot_offset;
    if (!on_disk) at.slot_offset += unit->disk_bytes;
  }
  if (unit->disk_bytes > 0)
    if (auto written = write_to_disk(*unit, disk_part.value()); !written.ok())
      return written.error();
  on_host_ += host;
  units_.push_back(std::move(unit));
  return size() - 1;
}

std::int32_t weight_homes::transfers(std::int32_t number) const {
  const weight_unit& u = unit(number);
  return static_cast<std::int32_t>(parts_of(u.disk_bytes) + parts_of(u.host_bytes));
}

bool weight_homes::from_disk(std::int32_t number, std::int32_t n) const {
  return n < parts_of(unit(number).disk_bytes);
}

result<nothing> weight_homes::transfer(std::int32_t number, std::int32_t n, void* slot,
                                       io_worker& worker) const {
  const weight_unit& u = unit(number);
  auto* to = static_cast<unsigned char*>(slot);
  const auto disk_parts = parts_of(u.disk_bytes);
  if (n >= disk_parts) {
    const std::int64_t at = (n - disk_parts) * transfer_bytes;
    const std::int64_t bytes = std::min(transfer_bytes, u.host_bytes - at);
    const auto copied = worker.copies.to_device(to + u.disk_bytes + at, u.host.data() + at,
                                                static_cast<std::size_t>(bytes));
    link_.pass(bytes);
    return from_gpu(copied);
  }
  const std::int64_t at = n * transfer_bytes;
  const std::int64_t bytes = std::min(transfer_bytes, u.disk_bytes - at);
  const bool straight = gpu::device_memory_is_host();
  unsigned char* read_to = straight ? to + at : worker.bounce.data();
  if (auto got = store_->read(u.store_offset + at, read_to, bytes); !got.ok()) return got;
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

void weight_homes::expect(std::int32_t number) const {
  const weight_unit& u = unit(number);
  if (u.disk_bytes > 0) store_->expect(u.store_offset, u.disk_bytes);
}

} // namespace twill::models::offload
