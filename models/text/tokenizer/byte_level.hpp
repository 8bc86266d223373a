// byte_level: the printable alphabet that byte-level BPE vocabularies store bytes in.
//
// Radford et al. 2019 (GPT-2): each byte has one printable character, so a vocabulary file holds no
// control characters; " " is "Ġ". Pure functions, any thread.
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

/// The bytes that a vocabulary entry stands for; nothing when a character is outside the alphabet.
std::optional<std::string> byte_level_decode(std::string_view entry);

/// The ids of single bytes in a vocabulary spelled in the alphabet; -1 where absent.
std::array<token_id, 256> byte_level_ids(const token_map& vocabulary);

using merge_list = std::vector<std::pair<std::string_view, std::string_view>>;

/// Splits a line "left right" of a merge list, whose left token may be a space; nothing when the
/// line is not of this form.
std::optional<std::pair<std::string_view, std::string_view>> split_merge(std::string_view line);

/// Merges, ranked by their order. Fails with bad_metadata, naming `where` and the place, when a
/// token or a union of two is not in the vocabulary.
result<bpe> make_merges(const token_map& vocabulary, const merge_list& merges,
                        const std::string& where);

} // namespace twill::models
