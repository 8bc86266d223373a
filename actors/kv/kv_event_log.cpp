#include "actors/kv/kv_event_log.hpp"

#include <utility>

namespace twill::actors {

kv_event_log::kv_event_log(std::size_t most)
    : most_(most), blocks_([this](kv_event one) { note(std::move(one)); }) {}

void kv_event_log::begin(std::uint64_t scope) {
  {
    const std::lock_guard lock(mutex_);
    open_ = true;
  }
  add({.what = report::kind::begin, .scope = scope});
}

void kv_event_log::end() {
  add({.what = report::kind::begin});
  const std::lock_guard lock(mutex_);
  open_ = false;
}

void kv_event_log::use_scope(std::uint64_t scope) {
  add({.what = report::kind::scope, .scope = scope});
}

void kv_event_log::stored(const block_identity& block, kv_medium medium) {
  add({.what = report::kind::stored, .medium = medium, .block = block.key, .parent = block.parent},
      block.tokens);
}

void kv_event_log::removed(const block_key& block, kv_medium medium) {
  add({.what = report::kind::removed, .medium = medium, .block = block});
}

void kv_event_log::device_is_empty() {
  add({.what = report::kind::device_is_empty});
}

void kv_event_log::add(const report& one, const std::vector<std::int32_t>& tokens) {
  bool full = false;
  {
    const std::lock_guard lock(mutex_);
    if (!open_) return;
    auto& [reports, all] = reported_;
    reports.push_back(one);
    reports.back().first_token = all.size();
    reports.back().n_tokens = tokens.size();
    all.insert(all.end(), tokens.begin(), tokens.end());
    full = reports.size() >= most_reports;
    wake();
  }
  if (!full) return;
  const std::lock_guard lock(reader_);
  digest();
}

/// The caller holds reader_.
void kv_event_log::digest() {
  digested_.reports.clear();
  digested_.tokens.clear();
  {
    const std::lock_guard lock(mutex_);
    std::swap(digested_, reported_);
  }
  for (const report& one : digested_.reports) {
    switch (one.what) {
    case report::kind::begin:
      blocks_.begin(one.scope);
      break;
    case report::kind::scope:
      blocks_.use_scope(one.scope);
      break;
    case report::kind::stored: {
      const auto first = digested_.tokens.begin() + static_cast<std::ptrdiff_t>(one.first_token);
      blocks_.stored(
          {one.block, one.parent, {first, first + static_cast<std::ptrdiff_t>(one.n_tokens)}},
          one.medium);
      break;
    }
    case report::kind::removed:
      blocks_.removed(one.block, one.medium);
      break;
    case report::kind::device_is_empty:
      blocks_.device_is_empty();
      break;
    }
  }
}

void kv_event_log::note(kv_event one) {
  if (one.what == kv_event::kind::cleared) {
    waiting_.clear(); // what they tell of is gone
    lost_ = false;
  } else if (!lost_ && waiting_.size() >= most_) {
    waiting_.clear();
    lost_ = true;
  }
  if (!lost_) waiting_.push_back(std::move(one));
}

/// The caller holds mutex_.
void kv_event_log::wake() {
  if (!waker_ || std::exchange(woken_, true)) return;
  waker_();
}

kv_events kv_event_log::take(bool everything) {
  {
    const std::lock_guard lock(mutex_);
    woken_ = false;
  }
  const std::lock_guard lock(reader_);
  digest();
  kv_events taken;
  taken.anew = std::exchange(lost_, false) || everything;
  taken.events = taken.anew ? blocks_.everything() : std::move(waiting_);
  waiting_.clear();
  return taken;
}

void kv_event_log::on_events(std::function<void()> waker) {
  const std::scoped_lock locks(reader_, mutex_);
  waker_ = std::move(waker);
  woken_ = false;
  if (!reported_.reports.empty() || !waiting_.empty() || lost_) wake();
}

} // namespace twill::actors
