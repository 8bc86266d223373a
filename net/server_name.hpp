// server_name: ids that carry the name of the server that made them (`server.name`), and the words
// of error messages about an id that this server does not know. Pure functions, any thread.
//
// An id is a prefix, the name with a dot where the server has one, and 24 hex digits, as make_id()
// makes it: "file-gpu1.0123456789abcdef01234567". What a message says follows from the id that the
// client sent and from this server's own name alone, so that it tells nobody what others have.
#pragma once

#include <string>
#include <string_view>

namespace twill::net {

/// What an id is of: its prefix, and what messages call it.
struct id_kind {
  std::string_view prefix;
  std::string_view noun;
};

inline constexpr id_kind response_ids{"resp_", "stored response"};
inline constexpr id_kind file_ids{"file-", "file"};
inline constexpr id_kind batch_ids{"batch_", "batch"};

/// Whether the id has the form of this kind, whichever server made it.
bool is_id_of(id_kind kind, std::string_view id);

/// The name in an id of this kind; empty where there is none, or the id has another form.
std::string_view server_named_in(id_kind kind, std::string_view id);

/// "there is no file ID; HINT", where the server named `own` (empty: it has no name) lacks it. It
/// has this server's name, and where the id names another server that name in place of the hint.
std::string describe_absent(id_kind kind, std::string_view id, std::string_view own,
                            std::string_view hint);

/// The id that a field has, for after "must name ..., got", with the same names.
std::string describe_unknown_value(id_kind kind, std::string_view id, std::string_view own);

} // namespace twill::net
