// fault_log: keeps the most recently logged warnings and errors, for pages that show them to an
// administrator.
//
// Thread safety: every function locks. Bounded: `kept_faults` entries of at most `fault_bytes`
// bytes of text. log::write() adds warnings and errors, whatever the least level of the log is. A
// line of the log never holds prompts or outputs, so an entry does not either.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace twill::log {

inline constexpr std::size_t kept_faults = 200;
inline constexpr std::size_t fault_bytes = 500;

struct fault {
  std::uint64_t id = 0;      ///< id of the entry; ids rise from 1 and may have gaps
  std::uint64_t version = 0; ///< grows with every change of any entry
  std::int64_t at_unix_ms = 0;
  std::uint64_t times = 1; ///< how often the message was repeated without another one in between
  bool is_error = false;   ///< true: an error; false: a warning
  std::string message;
};

class fault_log {
public:
  void add(bool is_error, std::string_view message, std::int64_t at_unix_ms);
  /// The entries that changed after `version`, oldest first.
  std::vector<fault> changed_after(std::uint64_t version) const;

private:
  mutable std::mutex mutex_;
  std::deque<fault> entries_;
  std::uint64_t versions_ = 0;
};

/// The fault log of this process.
fault_log& faults();

} // namespace twill::log
