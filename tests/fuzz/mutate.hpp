// Random damage to a file's bytes: flipped bits, overwritten numbers, and ranges that are cut,
// moved or repeated.
//
// A generator with the same seed gives the same damage. Overwritten numbers are drawn near the
// limits of their types, where checks tend to be wrong.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace twill::fuzz {

using generator = std::mt19937_64;

inline std::size_t draw(generator& random, std::size_t n) {
  return n == 0 ? 0 : static_cast<std::size_t>(random() % n);
}

/// Draws an offset in the file, mostly near its begin or end, where formats keep their headers.
inline std::size_t draw_place(generator& random, const std::string& bytes) {
  const std::size_t near = std::min<std::size_t>(bytes.size(), 1 + draw(random, 4096));
  switch (draw(random, 4)) {
  case 0:
    return draw(random, bytes.size());
  case 1:
    return bytes.size() - near + draw(random, near);
  default:
    return draw(random, near);
  }
}

inline std::uint64_t draw_number(generator& random) {
  const std::uint64_t power = std::uint64_t{1} << draw(random, 64);
  switch (draw(random, 4)) {
  case 0:
    return power - 1;
  case 1:
    return power + draw(random, 3);
  case 2:
    return ~std::uint64_t{0} - draw(random, 64);
  default:
    return draw(random, 300);
  }
}

/// Draws a text that has a meaning in the formats.
inline const std::string& draw_word(generator& random) {
  static const std::vector<std::string> words = {"\"shape\":[",
                                                 "\"data_offsets\":[0,",
                                                 "null",
                                                 "NaN",
                                                 "-Infinity",
                                                 "-1",
                                                 "1e308",
                                                 "9223372036854775807",
                                                 "{",
                                                 "[",
                                                 "}",
                                                 "]",
                                                 "\\ud800",
                                                 "\"F32\"",
                                                 "\"I32\"",
                                                 "\"weight_map\"",
                                                 ".qweight",
                                                 ".g_idx",
                                                 "\"bits\":8",
                                                 "\"group_size\":-1",
                                                 "ctorch\nFloatStorage\n",
                                                 "cos\nsystem\n",
                                                 "\x80\x02",
                                                 "(t",
                                                 "}(u",
                                                 "q\x01",
                                                 "h\x01",
                                                 "R",
                                                 "Q",
                                                 "\x95",
                                                 "PK\x05\x06",
                                                 "PK\x06\x07",
                                                 "PK\x01\x02",
                                                 "general.alignment",
                                                 "{% for m in messages %}",
                                                 "{% endfor %}",
                                                 "{% macro a(b) %}",
                                                 "{{ a(a) }}",
                                                 "|tojson",
                                                 "|replace('', messages)",
                                                 " * 99999999",
                                                 "[::-1]",
                                                 "{%- set ns = namespace(a=messages) -%}",
                                                 "range(1000000000)"};
  return words[draw(random, words.size())];
}

inline void mutate_once(generator& random, std::string& bytes, const std::string& other) {
  if (bytes.empty()) bytes = "x";
  const std::size_t at = draw_place(random, bytes);
  const std::size_t n = std::min(bytes.size() - at, 1 + draw(random, 64));
  switch (draw(random, 9)) {
  case 0:
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << draw(random, 8)));
    break;
  case 1:
    bytes[at] = static_cast<char>(random());
    break;
  case 2: { // a number of 2, 4 or 8 bytes
    const std::uint64_t number = draw_number(random);
    const std::size_t width = std::min<std::size_t>(bytes.size() - at, 2U << draw(random, 3));
    for (std::size_t i = 0; i < width; ++i)
      bytes[at + i] = static_cast<char>(number >> (8 * i));
    break;
  }
  case 3:
    bytes.erase(at, n);
    break;
  case 4:
    bytes.insert(at, bytes.substr(draw_place(random, bytes), n));
    break;
  case 5:
    bytes.replace(at, n, other.substr(draw(random, other.size()), n));
    break;
  case 6:
    bytes.resize(draw(random, 8) == 0 ? at
                                      : bytes.size() - draw(random, std::min(bytes.size(), n)));
    break;
  case 7: {
    const std::string& word = draw_word(random);
    bytes.replace(at, std::min(bytes.size() - at, draw(random, 2) * word.size()), word);
    break;
  }
  default: { // decimal digits, as JSON writes numbers
    const std::size_t digit = bytes.find_first_of("0123456789", at);
    if (digit != std::string::npos)
      bytes.replace(digit, 1 + draw(random, 4), std::to_string(draw_number(random)));
  }
  }
}

/// One to six mutations.
inline std::string mutate(generator& random, std::string bytes, const std::string& other) {
  for (std::size_t i = 0, n = 1 + draw(random, 6); i < n; ++i)
    mutate_once(random, bytes, other);
  return bytes;
}

} // namespace twill::fuzz
