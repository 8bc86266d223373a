// byte_level: the printable alphabet that byte-level BPE vocabularies store bytes in.
//
// Radford et al. 2019 (GPT-2): each byte has one printable character, so a vocabulary file holds no
// control characters; " " is "Ġ". Pure functions, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace twill::models {

/// The character of `byte`, as UTF-8.
std::string byte_level_char(std::uint8_t byte);

/// Bytes that a vocabulary entry stands for; nothing when a character is outside the alphabet.
std::optional<std::string> byte_level_decode(std::string_view entry);

} // namespace twill::models
