// journal_format: the byte format of the journal, the file of the stored responses that are still
// running. Of each response it holds the head (what was requested, see stored_head) and the records
// (its events, see stored_record). The functions are pure; one thread at a time may read a source.
//
// The file is a preamble followed by frames. A frame is: length of the payload in bytes (u32),
// payload, checksum (u64) of the length and the payload. The checksum also depends on the frame's
// offset in the file. A payload is a sequence of entries. An entry is: kind (u8), number of the
// response (u32), length of the content in bytes (u32), content. The content depends on the kind:
// - begin: length of the id in bytes (u8), id, head. This assigns the number to the response;
//   numbers start at 1 and grow by one with each begin.
// - record: the next record of the response.
// - end: empty. The response no longer runs, and all its entries in the journal are ignored.
// A frame is valid only as a whole.
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

/// The size of a frame without its payload, and of an entry without its content.
inline constexpr std::int64_t frame_overhead_bytes = 4 + 8;
inline constexpr std::int64_t entry_overhead_bytes = 1 + 4 + 4;
/// The largest payload that is written or read.
inline constexpr std::size_t most_payload_bytes = std::size_t{1} << 30;

/// Builds one frame at a time, and reuses its memory for the next frame.
class frame_writer {
public:
  void start();
  void begin(std::uint32_t number, std::string_view id, std::string_view head);
  void record(std::uint32_t number, std::string_view bytes);
  void end(std::uint32_t number);
  bool is_empty() const;
  /// Returns the complete frame (length, payload and checksum) for offset `place` of the file;
  /// empty if the payload is longer than most_payload_bytes.
  std::string_view finish(std::int64_t place);
  /// The size of the payload so far.
  std::size_t payload_bytes() const;

private:
  void entry(journal_kind kind, std::uint32_t number, std::size_t bytes);
  std::string frame_;
};

/// The content of a journal.
struct journal_content {
  struct running {
    stored_bytes whole;
    std::int64_t bytes = 0; ///< the size of the response's entries in the file
  };
  preamble_state preamble = preamble_state::damaged;
  std::map<std::uint32_t, running> runs; ///< by number, which is the order in which they began
  std::uint32_t last_number = 0;         ///< the number of the last begin
  /// Offset of the first frame that is not valid, or of the end of the file.
  std::int64_t good_bytes = 0;
  std::int64_t dead_bytes = 0; ///< size of the entries of responses that no longer run
};

/// Reads the frames of a journal up to the first frame that is cut off, has a wrong checksum or
/// breaks a rule of the format. Returns an error only if reading the source fails. The memory use
/// is proportional to the size of the source, whatever lengths are written in the file.
std::error_code read_journal(byte_source& from, journal_content& to);

} // namespace twill::net
