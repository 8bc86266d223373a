// server_name: ids that carry the name of the server that made them (`server.name`). Pure
// functions, any thread.
//
// An id is a prefix, the name with a dot where the server has one, and 24 hex digits, as make_id()
// makes it: "file-gpu1.0123456789abcdef01234567".
#pragma once

#include <string_view>

namespace twill::net {

/// What an id is of.
struct id_kind {
  std::string_view prefix;
};

inline constexpr id_kind response_ids{"resp_"};
inline constexpr id_kind file_ids{"file-"};
inline constexpr id_kind batch_ids{"batch_"};

/// Whether the id has the form of this kind, whichever server made it.
bool is_id_of(id_kind kind, std::string_view id);

} // namespace twill::net
