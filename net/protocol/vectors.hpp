// Vectors of numbers as clients want them: of length 1, compared, as text. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace twill::net {

/// The vector scaled to length 1; one without a length stays as it is.
std::vector<float> unit_vector(std::span<const float> of);

/// The cosine of the angle between two vectors of equal size, within [-1, 1]; 0 where one of them
/// has no length.
double cosine(std::span<const float> a, std::span<const float> b);

/// Appends the base64 text (RFC 4648, section 4) of the numbers' bytes, each number in four bytes,
/// the lowest first.
void append_base64(std::string& out, std::span<const float> numbers);

} // namespace twill::net
