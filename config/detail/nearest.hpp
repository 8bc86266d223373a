// nearest: which known word a mistyped one was probably meant to be. Pure.
#pragma once

#include <span>
#include <string_view>

namespace twill::config::detail {

/// The candidate at the least edit distance (Levenshtein, adjacent swaps count one), or empty when
/// none is near enough to be meant.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

} // namespace twill::config::detail
