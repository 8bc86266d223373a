// journal_format: the bytes of the journal of running responses. Pure; a source is read by one
// thread at a time.
//
// preamble; then frames: bytes of the payload (u32), payload, checksum of both (u64), which takes
// the frame's place in the file into account. A payload is a row of entries: kind (u8), number of
// the response (u32), bytes of what follows (u32), and
//   begin   bytes of the id (u8), id, head: the response of this number, which is one more than
//           that of the begin before it, and 1 for the first
//   record  the next record of the response
//   end     nothing: the response no longer runs, and what the journal has of it is dead
// A frame counts as a whole or not at all.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <system_error>

#include "net/stored/byte_source.hpp"
#include "net/stored/preamble.hpp"
#include "net/stored/stored_bytes.hpp"

namespace twill::net {

enum class journal_kind : std::uint8_t { begin = 1, record = 2, end = 3 };

/// Of a frame beside its payload, and of an entry beside what follows.
inline constexpr std::int64_t frame_overhead_bytes = 4 + 8;
inline constexpr std::int64_t entry_overhead_bytes = 1 + 4 + 4;
/// A longer payload is neither written nor read.
inline constexpr std::size_t most_payload_bytes = std::size_t{1} << 30;

/// Builds one frame at a time, in memory that is used again for the next.
class frame_writer {
public:
  void start();
  void begin(std::uint32_t number, std::string_view id, std::string_view head);
  void record(std::uint32_t number, std::string_view bytes);
  void end(std::uint32_t number);
  bool is_empty() const;
  /// The frame as it lies at `place` of the file; empty where its payload is too long.
  std::string_view finish(std::int64_t place);
  /// Of the payload so far.
  std::size_t payload_bytes() const;

private:
  void entry(journal_kind kind, std::uint32_t number, std::size_t bytes);
  std::string frame_;
};

/// What the journal holds.
struct journal_content {
  struct running {
    stored_bytes whole;
    std::int64_t bytes = 0; ///< of its entries
  };
  preamble_state preamble = preamble_state::damaged;
  std::map<std::uint32_t, running> runs; ///< by number: in the order in which they began
  std::uint32_t last_number = 0;         ///< of a begin
  std::int64_t good_bytes = 0;           ///< up to the first frame that is not whole
  std::int64_t dead_bytes = 0;           ///< of entries of responses that no longer run
};

/// Reads up to the first frame that is cut off, has another checksum or breaks a rule above. Fails
/// only as reading does. Takes memory in proportion to the bytes that the source has, whatever
/// lengths stand in it.
std::error_code read_journal(byte_source& from, journal_content& to);

} // namespace twill::net
