#include "config/base/fault_log.hpp"

namespace twill::log {
namespace {

/// The text, without part of a UTF-8 character at its end, and a mark where something is missing.
std::string cut(std::string_view text) {
  if (text.size() <= fault_bytes) return std::string(text);
  auto end = fault_bytes - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
    --end;
  return std::string(text.substr(0, end)) + "...";
}

} // namespace

void fault_log::add(bool is_error, std::string_view message, std::int64_t at_unix_ms) {
  auto text = cut(message);
  const std::lock_guard lock(mutex_);
  ++versions_;
  if (!entries_.empty() && entries_.back().is_error == is_error &&
      entries_.back().message == text) {
    auto& again = entries_.back();
    again.version = versions_;
    again.at_unix_ms = at_unix_ms;
    ++again.times;
    return;
  }
  entries_.push_back({versions_, versions_, at_unix_ms, 1, is_error, std::move(text)});
  if (entries_.size() > kept_faults) entries_.pop_front();
}

std::vector<fault> fault_log::changed_after(std::uint64_t version) const {
  const std::lock_guard lock(mutex_);
  std::vector<fault> changed;
  for (const auto& one : entries_)
    if (one.version > version) changed.push_back(one);
  return changed;
}

fault_log& faults() {
  static auto& kept = *new fault_log; // outlives threads that log at the end
  return kept;
}

} // namespace twill::log
