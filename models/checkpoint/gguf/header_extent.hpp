// header_extent: the number of bytes of a GGUF file that are needed to read its headers, for
// programs that download a file piece by piece. The functions are pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace twill::models::gguf {

/// `head` is the beginning of a file. Returns the offset where the headers end if `head` contains
/// all of them, and head.size() if `head` shows that they are invalid. Otherwise more bytes are
/// needed: the result is then larger than head.size(), and the headers end at that offset or later.
std::uint64_t header_extent(std::span<const std::byte> head);

} // namespace twill::models::gguf
