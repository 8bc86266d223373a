// nearest: finds the known word that a mistyped word was probably meant to be. The functions are
// pure.
#pragma once

#include <span>
#include <string_view>

namespace twill {

/// Returns the candidate with the least edit distance (Levenshtein, where swapping two neighbours
/// counts as one edit), or an empty text if no candidate is near enough.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

} // namespace twill
