// Writes a SentencePiece ModelProto field by field (sentencepiece_model.proto, protobuf wire
// format): BPE with byte fallback, and no normalisation of text.
#include <bit>
#include <cstdint>
#include <string_view>

#include "models/synth/tokenizer_files.hpp"

namespace twill::models::synth {
namespace {

class message {
public:
  void integer(std::uint32_t field, std::uint64_t x) {
    varint(field << 3);
    varint(x);
  }
  void number(std::uint32_t field, float x) {
    varint(field << 3 | 5U);
    const auto bits = std::bit_cast<std::uint32_t>(x);
    for (unsigned shift = 0; shift < 32; shift += 8)
      out_ += static_cast<char>(bits >> shift & 0xffU);
  }
  void bytes(std::uint32_t field, std::string_view text) {
    varint(field << 3 | 2U);
    varint(text.size());
    out_ += text;
  }
  const std::string& text() const { return out_; }

private:
  void varint(std::uint64_t x) {
    for (; x >= 0x80; x >>= 7)
      out_ += static_cast<char>(x | 0x80);
    out_ += static_cast<char>(x);
  }
  std::string out_;
};

std::string trainer_spec(const vocabulary& v) {
  message spec;
  spec.integer(3, 2); // model_type: BPE
  spec.integer(4, static_cast<std::uint64_t>(v.n_base));
  spec.integer(26, 1); // allow_whitespace_only_pieces
  spec.integer(25, 1); // split_digits
  for (const piece& p : v.pieces)
    if (p.type == piece_type::user_defined) spec.bytes(31, p.text);
  spec.integer(35, 1); // byte_fallback
  spec.integer(40, 0); // unk_id; the next three fields are bos_id, eos_id and pad_id
  spec.integer(41, 1);
  spec.integer(42, 2);
  spec.integer(43, ~std::uint64_t{0}); // -1: there is no padding token
  return spec.text();
}

std::string normalizer_spec(bool dummy_prefix) {
  message spec;
  spec.bytes(1, "identity");
  spec.integer(3, dummy_prefix ? 1 : 0); // add_dummy_prefix
  spec.integer(4, 0);                    // remove_extra_whitespaces
  return spec.text();
}

} // namespace

std::string sentence_piece_model(const recipe& r, const vocabulary& v) {
  message model;
  float score = 0;
  for (std::int32_t i = 0; i < v.n_base; ++i) {
    const piece& p = v.pieces[static_cast<std::size_t>(i)];
    message entry;
    entry.bytes(1, p.text);
    entry.number(2, p.type == piece_type::normal ? score : 0.0f);
    if (p.type == piece_type::normal) score -= 1; // earlier merges have higher scores
    if (p.type != piece_type::normal) entry.integer(3, static_cast<std::uint64_t>(p.type));
    model.bytes(1, entry.text());
  }
  model.bytes(2, trainer_spec(v));
  model.bytes(3, normalizer_spec(r.text != text_kind::baichuan));
  return model.text();
}

} // namespace twill::models::synth
