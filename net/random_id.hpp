// Random ids and seeds. make_id() makes new ids for replies, requests, files and batches. The ids
// come from a cryptographically secure source, because an id names a stored response or a file and
// must not be guessable. part_id() derives the ids of the parts of a reply from the reply's id.
// draw_seed() makes a seed for a request that gives none. Any thread may call these functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace twill::net {

/// "PREFIX" and 24 random hex digits.
std::string make_id(std::string_view prefix);

/// "PREFIX", then `server_name` and a dot unless the name is empty, then 24 random hex digits: the
/// id of an object that only this server has.
std::string make_id(std::string_view prefix, std::string_view server_name);

/// "PREFIX" and 24 hex digits that depend only on the reply id `of` and the part number `which`, so
/// that a reply that is rebuilt from storage has the same part ids.
std::string part_id(std::string_view prefix, std::string_view of, std::size_t which);

/// A random seed of 32 bits, so that clients in every language can represent it exactly.
std::uint32_t draw_seed();

} // namespace twill::net
