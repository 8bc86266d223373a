// header_extent: how much of a GGUF file must be there before its headers can be read, for those
// who fetch a file piece by piece. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace twill::models::gguf {

/// At most the size of `head`, the first bytes of a file, when they hold all of its headers, or
/// when no further byte could make them good. Otherwise a number beyond that size: the headers do
/// not end before it.
std::uint64_t header_extent(std::span<const std::byte> head);

} // namespace twill::models::gguf
