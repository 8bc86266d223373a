#include "actors/kv/kv_event_log.hpp"

#include <utility>

namespace twill::actors {

kv_event_log::kv_event_log(std::size_t most)
    : most_(most), blocks_([this](kv_event one) { note(std::move(one)); }) {}

void kv_event_log::begin(std::optional<std::uint64_t> scope) {
  {
    const std::lock_guard lock(mutex_);
    open_ = true;
    scope_ = scope;
  }
  add({.kind = report_kind::begin, .scope = scope});
}

void kv_event_log::end() {
  add({.kind = report_kind::begin});
  const std::lock_guard lock(mutex_);
  open_ = false;
}

void kv_event_log::use_scope(std::optional<std::uint64_t> scope) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(scope_, scope) == scope) return;
  }
  add({.kind = report_kind::begin, .scope = scope});
}

void kv_event_log::stored(const block_identity& block, kv_medium medium) {
  add({.kind = report_kind::stored, .medium = medium, .block = block.key, .parent = block.parent},
      block.tokens);
}

void kv_event_log::removed(const block_key& block, kv_medium medium) {
  add({.kind = report_kind::removed, .medium = medium, .block = block});
}

void kv_event_log::device_is_empty() {
  add({.kind = report_kind::device_is_empty});
}

void kv_event_log::add(const report& one, const std::vector<std::int32_t>& tokens) {
  bool full = false;
  {
    const std::lock_guard lock(mutex_);
    if (!open_) return;
    auto& [reports, all] = reported_;
    report whole = one;
    whole.first_token = all.size();
    whole.n_tokens = tokens.size();
    all.insert(all.end(), tokens.begin(), tokens.end());
    reports.push_back(whole);
    full = reports.size() >= most_reports;
    wake();
  }
  if (!full) return;
  const std::lock_guard lock(reader_);
  digest();
}

/// The caller holds reader_. Work that a lack of memory interrupts is continued by the next call.
void kv_event_log::digest() {
  digest_taken();
  digested_.reports.clear();
  digested_.tokens.clear();
  next_ = 0;
  {
    const std::lock_guard lock(mutex_);
    std::swap(digested_, reported_);
  }
  digest_taken();
}

void kv_event_log::digest_taken() {
  while (next_ < digested_.reports.size()) {
    const report& one = digested_.reports[next_++];
    switch (one.kind) {
    case report_kind::begin:
      blocks_.begin(one.scope);
      break;
    case report_kind::stored: {
      const auto first = digested_.tokens.begin() + static_cast<std::ptrdiff_t>(one.first_token);
      const auto end = first + static_cast<std::ptrdiff_t>(one.n_tokens);
      blocks_.stored({one.block, one.parent, {first, end}}, one.medium);
      break;
    }
    case report_kind::removed:
      blocks_.removed(one.block, one.medium);
      break;
    case report_kind::device_is_empty:
      blocks_.device_is_empty();
      break;
    }
  }
}

void kv_event_log::note(kv_event one) {
  if (one.kind == kv_event_kind::cleared) {
    waiting_.clear(); // earlier events are void: no block is left
    full_ = false;
  } else if (!full_ && waiting_.size() >= most_) {
    waiting_.clear();
    full_ = lost_ = true;
  }
  if (!full_) waiting_.push_back(std::move(one));
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
  taken.lost = std::exchange(lost_, false);
  taken.anew = std::exchange(full_, false) || everything;
  taken.events = taken.anew ? blocks_.everything() : std::move(waiting_);
  waiting_.clear();
  return taken;
}

void kv_event_log::on_events(std::function<void()> waker) {
  const std::scoped_lock locks(reader_, mutex_);
  waker_ = std::move(waker);
  woken_ = false;
  if (!reported_.reports.empty() || !waiting_.empty() || full_) wake();
}

} // namespace twill::actors
