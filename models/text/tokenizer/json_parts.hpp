// json_parts: one reader for each section of a tokenizer.json.
//
// The readers fail with unsupported, naming the component, for a component that twill does not
// support, and with bad_format for content that contradicts the format (Hugging Face tokenizers,
// version 1.0 of the file).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/base/value.hpp"
#include "models/text/tokenizer/byte_bpe.hpp"
#include "models/text/tokenizer/pipeline_tokenizer.hpp"

namespace twill::models::json {

/// The most levels of nested components of type "Sequence".
inline constexpr int max_sequence_depth = 16;

/// The "type" of a component; empty when it has none.
std::string_view type_of(const value& component);
bool flag(const value& component, std::string_view name, bool otherwise);
/// The text of a member; empty when it is absent or not a string.
std::string text(const value& component, std::string_view name);
bool is_absent(const value* component);
failure unknown(std::string_view section, const value& component);
failure malformed(std::string_view what);

result<normalizer> read_normalizer(const value* section);

struct pretokenizer_part {
  pretokenizer words_of;
  bool byte_level = false; ///< words are bytes in the alphabet of byte_level.hpp
};
result<pretokenizer_part> read_pretokenizer(const value* section);

/// What a tokenizer.json's decoder does to one token.
struct decoder_part {
  bool byte_level = false;
  bool byte_fallback = false;
  bool drops_space = false; ///< the first space of a decoded text is dropped
  std::vector<std::pair<std::string, std::string>> replacements;

  std::string bytes_of(const std::string& token) const;
};
result<decoder_part> read_decoder(const value* section);

/// Ids before and after a text.
struct frame_part {
  std::vector<token_id> prefix, suffix;
};
result<frame_part> read_post_processor(const value* section);

struct model_part {
  std::string kind;
  token_map vocabulary; ///< ids by text
  std::unique_ptr<const word_model> model;
};
result<model_part> read_model(const value* section, bool byte_level);

} // namespace twill::models::json
