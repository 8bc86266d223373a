// Reads a SentencePiece model as sentencepiece_model.proto describes it: every field of the message
// is listed first, then looked up. Tests use it to find out what damaged bytes mean.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/tokenizer/sentencepiece_file.hpp"
#include "tests/models/support/naive_json.hpp"

namespace twill::test {

struct wire_field {
  std::uint64_t number = 0;
  unsigned type = 0; ///< 0: varint, 1: eight bytes, 2: bytes behind their size, 5: four bytes
  std::uint64_t value = 0;
  std::string bytes;
  std::size_t begin = 0, end = 0; ///< where the field lies in the message
};

/// The fields of a message; nothing if the bytes are not a message.
inline std::optional<std::vector<wire_field>> wire_fields(const std::string& message) {
  std::vector<wire_field> fields;
  std::size_t at = 0;
  const auto varint = [&]() -> std::optional<std::uint64_t> {
    std::uint64_t value = 0;
    for (int i = 0; i < 10; ++i) {
      if (at == message.size()) return std::nullopt;
      const auto byte = static_cast<unsigned char>(message[at++]);
      value |= static_cast<std::uint64_t>(byte & 127) << (7 * i);
      if (byte < 128) return value;
    }
    return std::nullopt;
  };
  while (at < message.size()) {
    wire_field f;
    f.begin = at;
    const auto key = varint();
    if (!key || *key / 8 == 0 || *key >= (std::uint64_t{1} << 32)) return std::nullopt;
    f.number = *key / 8;
    f.type = static_cast<unsigned>(*key % 8);
    const auto first = f.type == 0 || f.type == 2 ? varint() : std::optional<std::uint64_t>(0);
    if (!first) return std::nullopt;
    f.value = *first;
    const std::uint64_t n = f.type == 2 ? *first : f.type == 1 ? 8 : f.type == 5 ? 4 : 0;
    if ((f.type != 0 && n == 0 && f.type != 2) || n > message.size() - at) return std::nullopt;
    f.bytes = message.substr(at, n);
    at += n;
    f.end = at;
    if (f.type == 1 || f.type == 5) std::memcpy(&f.value, f.bytes.data(), n);
    fields.push_back(std::move(f));
  }
  return fields;
}

/// The model that a file describes; nothing if the file contradicts the format.
inline std::optional<models::sentencepiece_file> naive_sentencepiece(const std::string& model) {
  using file_t = models::sentencepiece_file;
  file_t file;
  std::uint64_t kind = 1;
  const auto message = wire_fields(model);
  if (!message) return std::nullopt;
  for (const wire_field& f : *message) {
    if (f.number < 1 || f.number > 3) continue;
    const auto fields = wire_fields(f.bytes);
    if (f.type != 2 || !fields) return std::nullopt;
    std::uint64_t type = 1;
    file_t::piece piece;
    for (const wire_field& g : *fields) {
      // The wire type that SentencePiece's description gives to each field that is read.
      const bool is_piece = f.number == 1, is_trainer = f.number == 2;
      const auto is = [&](bool here, unsigned number) { return here && g.number == number; };
      std::optional<unsigned> wanted;
      if (is(is_piece, 1) || is(is_trainer, 44) || is(f.number == 3, 2)) wanted = 2;
      if (is(is_piece, 2)) wanted = 5;
      if (is(is_piece, 3) || is(is_trainer, 3) || is(is_trainer, 24) || is(is_trainer, 35))
        wanted = 0;
      if (f.number == 3 && g.number >= 3 && g.number <= 5) wanted = 0;
      if (wanted && *wanted != g.type) return std::nullopt;
      if (is(is_piece, 1)) piece.text = g.bytes;
      if (is(is_piece, 2)) piece.score = std::bit_cast<float>(static_cast<std::uint32_t>(g.value));
      if (is(is_piece, 3)) type = g.value;
      if (is(is_trainer, 3)) kind = g.value;
      if (is(is_trainer, 24)) file.space_is_suffix = g.value != 0;
      if (is(is_trainer, 35)) file.byte_fallback = g.value != 0;
      if (is(is_trainer, 44)) file.unknown_text = g.bytes;
      if (is(f.number == 3, 2)) file.charsmap = g.bytes;
      if (is(f.number == 3, 3)) file.add_dummy_prefix = g.value != 0;
      if (is(f.number == 3, 4)) file.remove_extra_spaces = g.value != 0;
      if (is(f.number == 3, 5)) file.escape_spaces = g.value != 0;
    }
    if (f.number != 1) continue;
    if (type < 1 || type > 6) return std::nullopt;
    piece.type = static_cast<file_t::piece_type>(type);
    file.pieces.push_back(piece);
  }
  if (kind != 1 && kind != 2) return std::nullopt;
  file.kind = static_cast<file_t::model_kind>(kind);
  std::set<std::string> texts;
  std::size_t n_unknown = 0, n_bytes = 0;
  for (const auto& p : file.pieces) {
    texts.insert(p.text);
    n_unknown += p.type == file_t::piece_type::unknown;
    n_bytes += p.type == file_t::piece_type::byte;
    if (p.text.empty() || p.text.size() > 4096 || !is_naive_utf8(p.text) ||
        p.text.find('\0') != std::string::npos || !std::isfinite(p.score))
      return std::nullopt;
  }
  if (texts.size() != file.pieces.size() || n_unknown != 1 || !is_naive_utf8(file.unknown_text) ||
      n_bytes != (file.byte_fallback ? 256U : 0U))
    return std::nullopt;
  return file;
}

} // namespace twill::test
