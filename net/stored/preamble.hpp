// preamble: the first bytes of the journal (the file of all running responses) and of the file of
// each finished response. They tell the kind of the file and the version of its format. The
// functions are pure.
//
// The preamble is: magic (8 bytes), version (u32), 0 (u32), checksum of these 16 bytes (u64). All
// versions begin in this way, so a program can distinguish the file of a later version from a
// damaged file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace twill::net {

enum class stored_kind { journal, response };

inline constexpr std::int64_t preamble_bytes = 24;

std::string make_preamble(stored_kind kind);

enum class preamble_state {
  right,         ///< the given kind, in the version that this program writes
  other_version, ///< the given kind, in another version
  damaged        ///< anything else
};
/// `bytes` must have preamble_bytes bytes.
preamble_state check_preamble(std::string_view bytes, stored_kind kind);

} // namespace twill::net
