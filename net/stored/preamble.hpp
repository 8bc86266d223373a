// preamble: the first bytes of the journal and of each file of a response: what kind of file it is
// and in which version of its format. Pure.
//
// magic (8 bytes), version (u32), 0 (u32), checksum of these (u64). All versions begin so, which
// lets a program tell the file of a later version from damage.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace twill::net {

enum class stored_kind { journal, response };

inline constexpr std::int64_t preamble_bytes = 24;

std::string make_preamble(stored_kind kind);

enum class preamble_state {
  right,         ///< the kind asked for, in the version that this program writes
  other_version, ///< the kind asked for, of another version
  damaged        ///< anything else
};
/// `bytes` has preamble_bytes.
preamble_state check_preamble(std::string_view bytes, stored_kind kind);

} // namespace twill::net
