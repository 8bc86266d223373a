// make_id: fresh ids for replies, requests, files and batches. They come from a secure source: an
// id names a stored response or a file, so nobody may guess the next one. part_id: ids within a
// reply, which follow from its own. draw_seed: a seed for a request that gives none. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace twill::net {

/// "PREFIX" and 24 random hex digits.
std::string make_id(std::string_view prefix);

/// "PREFIX", the name of the server that makes it with a dot, where it has one, and 24 random hex
/// digits: the id of what only this server has.
std::string make_id(std::string_view prefix, std::string_view server_name);

/// "PREFIX" and 24 hex digits that are always the same for part `which` of the reply `of`, so that
/// a reply that is made anew from what was stored has the same ids.
std::string part_id(std::string_view prefix, std::string_view of, std::size_t which);

/// Of 32 bits, so that clients of every language keep all of them.
std::uint32_t draw_seed();

} // namespace twill::net
