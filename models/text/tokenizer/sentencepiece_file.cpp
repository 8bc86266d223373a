#include "models/text/tokenizer/sentencepiece_file.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <unordered_set>
#include <utility>

#include "models/text/detokenizer.hpp"

namespace twill::models {
namespace {

constexpr std::size_t max_piece_bytes = 4096;

failure bad(const std::string& what) {
  return {errc::bad_format, "SentencePiece model, " + what};
}

enum class wire { varint = 0, eight_bytes = 1, counted = 2, four_bytes = 5 };

/// One field of a protocol buffer message.
struct field {
  std::uint32_t number = 0;
  wire type = wire::varint;
  std::uint64_t value = 0;  ///< value of varint and fixed kinds
  std::string_view content; ///< bytes of the length-delimited kind
};

/// Reads the fields of one message. Every length is checked against the bytes that remain.
class message_reader {
public:
  explicit message_reader(std::string_view bytes) : rest_(bytes) {}

  bool done() const { return rest_.empty(); }

  std::optional<field> next() {
    std::uint64_t key = 0;
    field f;
    if (!read_varint(key) || key >> 3 == 0 || key >> 32 != 0) return std::nullopt;
    f.number = static_cast<std::uint32_t>(key >> 3);
    f.type = static_cast<wire>(key & 7);
    switch (f.type) {
    case wire::varint:
      if (!read_varint(f.value)) return std::nullopt;
      return f;
    case wire::eight_bytes:
      return read_fixed(8, f) ? std::optional(f) : std::nullopt;
    case wire::four_bytes:
      return read_fixed(4, f) ? std::optional(f) : std::nullopt;
    case wire::counted: {
      std::uint64_t n = 0;
      if (!read_varint(n) || n > rest_.size()) return std::nullopt;
      f.content = rest_.substr(0, static_cast<std::size_t>(n));
      rest_.remove_prefix(static_cast<std::size_t>(n));
      return f;
    }
    default:
      return std::nullopt;
    }
  }

private:
  bool read_varint(std::uint64_t& out) {
    out = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) return false;
      const auto byte = static_cast<std::uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      out |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  bool read_fixed(std::size_t n, field& f) {
    if (rest_.size() < n) return false;
    for (std::size_t i = 0; i < n; ++i)
      f.value |= std::uint64_t{static_cast<std::uint8_t>(rest_[i])} << (8 * i);
    rest_.remove_prefix(n);
    return true;
  }

  std::string_view rest_;
};

/// A field that is read from a protocol-buffer message: its number, its type, and the function that
/// takes its value. Other fields are skipped.
struct known_field {
  std::uint32_t number;
  wire type;
  std::function<void(const field&)> take;
};

/// Passes the value of each field listed in `known` to the function given there. Returns false if
/// the bytes are not a protocol-buffer message or if such a field has another type.
bool read_message(std::string_view bytes, const std::vector<known_field>& known) {
  message_reader reader(bytes);
  while (!reader.done()) {
    const auto f = reader.next();
    if (!f) return false;
    for (const known_field& k : known) {
      if (k.number != f->number) continue;
      if (k.type != f->type) return false;
      k.take(*f);
    }
  }
  return true;
}

known_field flag_field(std::uint32_t number, bool& into) {
  return {number, wire::varint, [&into](const field& f) { into = f.value != 0; }};
}
known_field number_field(std::uint32_t number, std::uint64_t& into) {
  return {number, wire::varint, [&into](const field& f) { into = f.value; }};
}
known_field text_field(std::uint32_t number, std::string& into) {
  return {number, wire::counted, [&into](const field& f) { into = f.content; }};
}
known_field float_field(std::uint32_t number, float& into) {
  return {number, wire::four_bytes, [&into](const field& f) {
            into = std::bit_cast<float>(static_cast<std::uint32_t>(f.value));
          }};
}

class message_writer {
public:
  void varint(std::uint32_t number, std::uint64_t value) {
    put(number << 3);
    put(value);
  }
  void bytes(std::uint32_t number, std::string_view content) {
    put(number << 3 | 2);
    put(content.size());
    out_ += content;
  }
  void single(std::uint32_t number, float value) {
    put(number << 3 | 5);
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (unsigned shift = 0; shift < 32; shift += 8)
      out_.push_back(static_cast<char>(bits >> shift & 0xFF));
  }
  const std::string& out() const { return out_; }

private:
  void put(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7)
      out_.push_back(static_cast<char>(value | 0x80));
    out_.push_back(static_cast<char>(value));
  }

  std::string out_;
};

result<nothing> check_pieces(const sentencepiece_file& file) {
  std::unordered_set<std::string_view> seen;
  std::size_t n_unknown = 0, n_bytes = 0;
  for (std::size_t i = 0; i < file.pieces.size(); ++i) {
    const auto& p = file.pieces[i];
    const auto wrong = [i](const std::string& rule) {
      return bad("piece " + std::to_string(i) + " " + rule);
    };
    if (p.text.empty() || p.text.size() > max_piece_bytes)
      return wrong("must have 1 to 4096 bytes, given " + std::to_string(p.text.size()));
    if (p.text.find('\0') != std::string::npos || !is_utf8(p.text))
      return wrong("must be valid UTF-8 without NUL");
    if (!std::isfinite(p.score)) return wrong("must have a finite score");
    if (!seen.insert(p.text).second) return wrong("must be unique, given \"" + p.text + "\"");
    n_unknown += p.type == sentencepiece_file::piece_type::unknown;
    n_bytes += p.type == sentencepiece_file::piece_type::byte;
  }
  if (n_unknown != 1) return bad("must have one unknown piece, given " + std::to_string(n_unknown));
  if (n_bytes != (file.byte_fallback ? 256 : 0))
    return bad("must have 256 byte pieces with byte fallback and none without, given " +
               std::to_string(n_bytes));
  return nothing{};
}

} // namespace

result<sentencepiece_file> sentencepiece_file::parse(std::string_view bytes) {
  sentencepiece_file file;
  std::uint64_t kind = 1, type = 1;
  piece next;
  std::string wrong;
  const std::vector<known_field> piece_fields = {text_field(1, next.text),
                                                 float_field(2, next.score), number_field(3, type)};
  const std::vector<known_field> trainer_fields = {
      number_field(3, kind), flag_field(24, file.space_is_suffix),
      flag_field(35, file.byte_fallback), text_field(44, file.unknown_text)};
  const std::vector<known_field> normalizer_fields = {
      text_field(2, file.charsmap), flag_field(3, file.add_dummy_prefix),
      flag_field(4, file.remove_extra_spaces), flag_field(5, file.escape_spaces)};
  const auto take_piece = [&](const field& f) {
    next = piece();
    type = 1;
    const std::string where = "piece " + std::to_string(file.pieces.size());
    if (!read_message(f.content, piece_fields)) wrong = where + " is no message";
    if (type < 1 || type > 6) wrong = where + " must have a type of 1 to 6";
    next.type = static_cast<piece_type>(type);
    if (wrong.empty()) file.pieces.push_back(std::move(next));
  };
  const auto take = [&](const char* name, const std::vector<known_field>& known) {
    return [&wrong, &known, name](const field& f) {
      if (!read_message(f.content, known)) wrong = std::string(name) + " is no message";
    };
  };
  const bool whole =
      read_message(bytes, {{1, wire::counted, take_piece},
                           {2, wire::counted, take("trainer_spec", trainer_fields)},
                           {3, wire::counted, take("normalizer_spec", normalizer_fields)}});
  if (!whole) return bad("is no protocol buffer message, or ends early");
  if (!wrong.empty()) return bad(wrong);
  if (kind != 1 && kind != 2)
    return failure{errc::unsupported,
                   "SentencePiece model_type, must be 1 (unigram) or 2 (bpe), given " +
                       std::to_string(kind)};
  file.kind = static_cast<model_kind>(kind);
  if (!is_utf8(file.unknown_text)) return bad("unk_surface, must be valid UTF-8");
  if (auto checked = check_pieces(file); !checked.ok()) return checked.error();
  return file;
}

std::string sentencepiece_file::write() const {
  message_writer model;
  for (const piece& p : pieces) {
    message_writer one;
    one.bytes(1, p.text);
    one.single(2, p.score);
    one.varint(3, static_cast<std::uint64_t>(p.type));
    model.bytes(1, one.out());
  }
  message_writer trainer;
  trainer.varint(3, static_cast<std::uint64_t>(kind));
  trainer.varint(24, space_is_suffix);
  trainer.varint(35, byte_fallback);
  trainer.bytes(44, unknown_text);
  model.bytes(2, trainer.out());
  message_writer rules;
  rules.bytes(1, "identity");
  rules.varint(3, add_dummy_prefix);
  rules.varint(4, remove_extra_spaces);
  rules.varint(5, escape_spaces);
  model.bytes(3, rules.out());
  return model.out();
}

} // namespace twill::models
