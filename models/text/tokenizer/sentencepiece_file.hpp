// sentencepiece_file: reads and checks a SentencePiece tokenizer.model, and writes a clean copy of
// it.
//
// The file is a protocol buffer (sentencepiece_model.proto); only the fields that encoding needs
// are read. The file is not trusted, so the SentencePiece library reads only the copy that write()
// makes from the checked fields.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/errc.hpp"

namespace twill::models {

struct sentencepiece_file {
  enum class piece_type { normal = 1, unknown, control, user_defined, unused, byte };
  enum class model_kind { unigram = 1, bpe };

  struct piece {
    std::string text; ///< spaces are U+2581
    float score = 0;
    piece_type type = piece_type::normal;
  };

  std::vector<piece> pieces;
  model_kind kind = model_kind::unigram;
  bool byte_fallback = false;
  bool space_is_suffix = false;
  bool add_dummy_prefix = true;
  bool remove_extra_spaces = true;
  bool escape_spaces = true;
  std::string charsmap;                        ///< compiled normalization rules; may be empty
  std::string unknown_text = " \xE2\x81\x87 "; ///< what decoding prints for an unknown token

  /// Fails with bad_format if the bytes contradict the format, and with unsupported for
  /// SentencePiece's model types word and char.
  static result<sentencepiece_file> parse(std::string_view bytes);
  /// A model file with the same fields, without the compiled rules.
  std::string write() const;
};

} // namespace twill::models
