// make_id: fresh ids for replies, requests, files and batches. Any thread. They come from a secure
// source: an id names a remembered conversation or a file, so nobody may guess the next one.
#pragma once

#include <string>
#include <string_view>

namespace twill::net {

/// "PREFIX" and 24 random hex digits.
std::string make_id(std::string_view prefix);

} // namespace twill::net
