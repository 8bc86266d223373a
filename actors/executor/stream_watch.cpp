#include "actors/executor/stream_watch.hpp"

#include <utility>

#include "models/decoder/decoder.hpp"
#include "models/offload/streams/weight_stream.hpp"

namespace twill::actors {

namespace {

stream_report::span_kind kind_of(models::offload::lane where) {
  if (where == models::offload::lane::disk_read) return stream_report::span_kind::from_disk;
  if (where == models::offload::lane::host_to_device) return stream_report::span_kind::from_host;
  return stream_report::span_kind::compute;
}

} // namespace

void stream_watch::watch(models::decoder& of) {
  decoder_ = of.stream() == nullptr ? nullptr : &of;
  if (decoder_ != nullptr) of.record_to(&recorder_, true);
}

void stream_watch::step_begins() {
  if (decoder_ != nullptr) began_ = clock::now();
}

void stream_watch::step_ends() {
  if (decoder_ == nullptr) return;
  const auto now = clock::now();
  auto spans = recorder_.take();
  if (now - reported_ < interval) return;
  reported_ = now;
  auto made = std::make_shared<stream_report>(totals());
  made->step_s = std::chrono::duration<double>(now - began_).count();
  const double begin_s = recorder_.seconds_at(began_);
  for (const auto& span : spans)
    made->spans.push_back({kind_of(span.where), span.layer_or_head_part,
                           static_cast<float>(span.begin_seconds - begin_s),
                           static_cast<float>(span.end_seconds - begin_s)});
  report_ = std::move(made);
}

std::shared_ptr<const stream_report> stream_watch::placement() const {
  return decoder_ == nullptr ? nullptr : std::make_shared<const stream_report>(totals());
}

std::shared_ptr<const stream_report> stream_watch::take() {
  return std::exchange(report_, nullptr);
}

stream_report stream_watch::totals() const {
  stream_report all;
  const auto placed = decoder_->stream()->placed();
  all.device_bytes = placed.device;
  all.host_bytes = placed.host;
  all.disk_bytes = placed.disk;
  const auto moved = decoder_->stream()->stats();
  all.host_read_bytes = moved.host_bytes;
  all.disk_read_bytes = moved.disk_bytes;
  all.waited_s = moved.waited_seconds;
  return all;
}

} // namespace twill::actors
