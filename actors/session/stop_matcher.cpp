#include "actors/session/stop_matcher.hpp"

#include <algorithm>

namespace twill::actors {

stop_matcher::stop_matcher(const std::vector<std::string>& stops, bool include)
    : include_(include) {
  for (const std::string& stop : stops)
    if (!stop.empty()) stops_.push_back(stop);
}

bool stop_matcher::push(std::string_view text, std::string& out) {
  if (stops_.empty()) {
    out += text;
    return false;
  }
  held_ += text;
  std::size_t end = std::string::npos; // one past the match
  const std::string* match = nullptr;
  for (const std::string& stop : stops_) {
    const std::size_t at = held_.find(stop);
    if (at == std::string::npos) continue;
    const std::size_t stop_end = at + stop.size();
    if (match == nullptr || stop_end < end || (stop_end == end && stop.size() > match->size())) {
      match = &stop;
      end = stop_end;
    }
  }
  if (match != nullptr) {
    found_ = *match;
    out.append(held_, 0, include_ ? end : end - match->size());
    held_.clear();
    return true;
  }
  // Hold back the longest end of the text with which a stop string begins.
  std::size_t keep = 0;
  for (const std::string& stop : stops_) {
    for (std::size_t n = std::min(stop.size() - 1, held_.size()); n > keep; --n) {
      if (held_.compare(held_.size() - n, n, stop, 0, n) == 0) keep = n;
    }
  }
  out.append(held_, 0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
  return false;
}

void stop_matcher::pass(std::string_view text, std::string& out) {
  flush(out);
  out += text;
}

void stop_matcher::flush(std::string& out) {
  out += held_;
  held_.clear();
}

} // namespace twill::actors
