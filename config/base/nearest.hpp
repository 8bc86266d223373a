// nearest: the known word that a mistyped word was probably meant to be. Pure.
#pragma once

#include <span>
#include <string_view>

namespace twill {

/// The candidate at the least edit distance (Levenshtein, in which a swap of neighbours counts
/// one), or an empty text when no candidate is near enough to be meant.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

} // namespace twill
