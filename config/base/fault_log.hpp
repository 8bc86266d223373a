// fault_log: the warnings and errors that were logged last, for pages that show them to an
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
  std::uint64_t id = 0;      ///< names the entry, from 1 on
  std::uint64_t version = 0; ///< grows with every change of any entry
  std::int64_t at_unix_ms = 0;
  std::uint64_t times = 1; ///< a message that comes again at once is one entry
  bool is_error = false;   ///< else a warning
  std::string message;
};

class fault_log {
public:
  void add(bool is_error, std::string_view message, std::int64_t at_unix_ms);
  /// The entries that changed after that version, oldest first.
  std::vector<fault> changed_after(std::uint64_t version) const;

private:
  mutable std::mutex mutex_;
  std::deque<fault> entries_;
  std::uint64_t versions_ = 0;
};

/// That of this process.
fault_log& faults();

} // namespace twill::log
