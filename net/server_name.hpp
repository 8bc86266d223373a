// server_name: ids that contain the name of the server that made them (`server.name`), and the
// error messages about an id that this server does not know. Pure functions, which any thread may
// call.
//
// An id consists of a prefix, the server's name and a dot if the server has a name, and 24 hex
// digits, as make_id() makes it: "file-gpu1.0123456789abcdef01234567". A message depends only on
// the id that the client sent and on this server's own name, so that it never reveals which ids
// other clients have.
#pragma once

#include <string>
#include <string_view>

namespace twill::net {

/// The kind of object that an id names: the prefix of its ids, and the noun that messages use.
struct id_kind {
  std::string_view prefix;
  std::string_view noun;
};

inline constexpr id_kind response_ids{"resp_", "stored response"};
inline constexpr id_kind file_ids{"file-", "file"};
inline constexpr id_kind batch_ids{"batch_", "batch"};

/// Whether the id has the form of this kind, whichever server made the id.
bool is_id_of(id_kind kind, std::string_view id);

/// The server name within an id of this kind; empty where the id has no name or another form.
std::string_view server_named_in(id_kind kind, std::string_view id);

/// Returns "there is no file ID; HINT", for the server named `own` (empty: the server has no name).
/// The message also contains `own` if it is not empty. If the id names another server, the message
/// advises to ask that server instead of giving the hint.
std::string describe_absent(id_kind kind, std::string_view id, std::string_view own,
                            std::string_view hint);

/// Returns what follows the words "must name ..., got" in an error message. It is the id that the
/// client sent and, as in describe_absent(), the names of this server and of the server that the id
/// names.
std::string describe_unknown_value(id_kind kind, std::string_view id, std::string_view own);

} // namespace twill::net
