// trace_line: one parsed line of a trace. The functions are pure. An absent member reads as 0,
// false or empty. A member of the wrong kind or out of its range throws bad_trace.
#pragma once

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/batcher/batcher_limits.hpp"
#include "config/base/value.hpp"

namespace twill::actors {

/// The text is no trace of a scheduler.
struct bad_trace : std::runtime_error {
  using runtime_error::runtime_error;
};
/// The text is a trace, but this program decides otherwise.
struct other_decision : std::runtime_error {
  using runtime_error::runtime_error;
};

/// The numbers in a text that id_ranges wrote, without the numbers that are followed by a sign.
class number_ranges {
public:
  explicit number_ranges(std::string_view text);
  bool contains(std::uint64_t n) const;
  const std::vector<std::pair<std::uint64_t, std::uint64_t>>& ranges() const& { return ranges_; }

private:
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges_;
};

class trace_line {
public:
  explicit trace_line(const std::string& text);

  const std::string& what() const { return what_; }
  bool is_decision() const { return what_ == "plan" || what_ == "end"; }
  /// The part of the line after the stream's number and the time.
  std::string_view body() const;

  std::int64_t number(const char* name, std::int64_t least = 0,
                      std::int64_t most = std::numeric_limits<std::int64_t>::max()) const;
  std::int32_t small(const char* name, std::int64_t least = 0,
                     std::int64_t most = std::numeric_limits<std::int32_t>::max()) const {
    return static_cast<std::int32_t>(number(name, least, most));
  }
  std::uint64_t id(const char* name) const { return static_cast<std::uint64_t>(number(name)); }
  double real(const char* name) const;
  bool yes(const char* name) const;
  std::string text(const char* name) const;
  number_ranges numbers(const char* name) const { return number_ranges(text(name)); }
  batcher_limits limits() const;

private:
  [[noreturn]] void wrong(const char* name, const std::string& rule) const;

  std::string text_;
  value members_;
  std::string what_;
};

} // namespace twill::actors
