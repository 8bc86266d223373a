// byte_level: the alphabet of printable characters in which byte-level BPE vocabularies store
// bytes.
//
// Radford et al. 2019 (GPT-2): each byte has one printable character, so a vocabulary file holds no
// control characters; " " is "Ġ". Pure functions, which any thread may call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/errc.hpp"
#include "models/text/tokenizer/byte_bpe.hpp"

namespace twill::models {

/// The character of `byte`, as UTF-8.
std::string byte_level_char(std::uint8_t byte);

/// The bytes that a vocabulary entry stands for; none if a character is not in the alphabet.
std::optional<std::string> byte_level_decode(std::string_view entry);

/// The ids of single bytes in a vocabulary spelled in the alphabet; -1 where absent.
std::array<token_id, 256> byte_level_ids(const token_map& vocabulary);

using merge_list = std::vector<std::pair<std::string_view, std::string_view>>;

/// Splits a line of a merge list, which has the form "left right", into its two tokens. The left
/// token may itself begin with a space. Returns none if the line does not have this form.
std::optional<std::pair<std::string_view, std::string_view>> split_merge(std::string_view line);

/// Builds the merges, ranked by their order in the list. Fails with bad_metadata if a token, or the
/// text of two tokens joined, is not in the vocabulary. The failure's detail begins with `where`,
/// the name of the list, and gives the place in the list.
result<bpe> make_merges(const token_map& vocabulary, const merge_list& merges,
                        const std::string& where);

} // namespace twill::models
