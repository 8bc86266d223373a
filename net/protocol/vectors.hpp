// Operations on embedding vectors: scaling to length 1, cosine similarity, base64. The functions
// are pure.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace twill::net {

/// Returns the vector scaled to length 1. A vector of length 0 is returned unchanged.
std::vector<float> unit_vector(std::span<const float> of);

/// The cosine of the angle between two vectors of equal size, within [-1, 1]; 0 if either vector
/// has length 0.
double cosine(std::span<const float> a, std::span<const float> b);

/// Appends the base64 text (RFC 4648, section 4) of the bytes of `numbers`. Each number takes four
/// bytes, least significant byte first.
void append_base64(std::string& out, std::span<const float> numbers);

} // namespace twill::net
