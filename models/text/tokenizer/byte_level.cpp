#include "models/text/tokenizer/byte_level.hpp"

#include <array>
#include <cstddef>

namespace twill::models {
namespace {

// Printable Latin-1 stands for itself; the other 68 bytes are U+0100 and following, in byte order.
constexpr bool stands_for_itself(unsigned b) {
  return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
}

constexpr std::size_t n_chars = 0x100 + 68;

struct alphabet {
  std::array<std::uint16_t, 256> char_of_byte{};
  std::array<std::int16_t, n_chars> byte_of_char{};

  constexpr alphabet() {
    for (auto& b : byte_of_char)
      b = -1;
    std::uint16_t next = 0x100;
    for (unsigned b = 0; b < 256; ++b) {
      char_of_byte[b] = stands_for_itself(b) ? static_cast<std::uint16_t>(b) : next++;
      byte_of_char[char_of_byte[b]] = static_cast<std::int16_t>(b);
    }
  }
};

constexpr alphabet table;

} // namespace

std::string byte_level_char(std::uint8_t byte) {
  const unsigned c = table.char_of_byte[byte];
  if (c < 0x80) return std::string(1, static_cast<char>(c));
  return {static_cast<char>(0xC0 | (c >> 6)), static_cast<char>(0x80 | (c & 0x3F))};
}

std::optional<std::string> byte_level_decode(std::string_view entry) {
  std::string bytes;
  bytes.reserve(entry.size());
  for (std::size_t i = 0; i < entry.size(); ++i) {
    unsigned c = static_cast<std::uint8_t>(entry[i]);
    if (c >= 0x80) {
      // The alphabet ends below U+0800, so every other character in it has two bytes.
      if ((c & 0xE0) != 0xC0 || i + 1 >= entry.size()) return std::nullopt;
      c = (c & 0x1F) << 6 | (static_cast<std::uint8_t>(entry[++i]) & 0x3F);
    }
    if (c >= n_chars || table.byte_of_char[c] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(table.byte_of_char[c]));
  }
  return bytes;
}

std::array<token_id, 256> byte_level_ids(const token_map& vocabulary) {
  std::array<token_id, 256> ids;
  for (unsigned b = 0; b < 256; ++b) {
    const auto it = vocabulary.find(byte_level_char(static_cast<std::uint8_t>(b)));
    ids[b] = it == vocabulary.end() ? -1 : it->second;
  }
  return ids;
}

std::optional<std::pair<std::string_view, std::string_view>> split_merge(std::string_view line) {
  const std::size_t space = line.find(' ', 1);
  if (space == std::string_view::npos || space + 1 == line.size()) return std::nullopt;
  return std::pair(line.substr(0, space), line.substr(space + 1));
}

result<bpe> make_merges(const token_map& vocabulary, const merge_list& merges,
                        const std::string& where) {
  const auto id_of = [&](std::string_view text) {
    const auto it = vocabulary.find(text);
    return it == vocabulary.end() ? token_id{-1} : it->second;
  };
  bpe merge_table(merges.size());
  std::string whole;
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    whole.assign(left).append(right);
    const token_id l = id_of(left), r = id_of(right), merged = id_of(whole);
    if (l < 0 || r < 0 || merged < 0)
      return failure{errc::bad_metadata,
                     where + "[" + std::to_string(rank) +
                         "], both tokens and their union must be in the vocabulary, given \"" +
                         std::string(left) + " " + std::string(right) + "\""};
    merge_table.add_merge(l, r, static_cast<std::int32_t>(rank), merged);
  }
  return merge_table;
}

} // namespace twill::models
