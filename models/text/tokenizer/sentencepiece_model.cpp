#include "models/text/tokenizer/sentencepiece_model.hpp"

#include <sentencepiece_processor.h>

#include <cstddef>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/text/tokenizer/char_bpe.hpp"
#include "models/text/tokenizer/neighbour_set.hpp"
#include "models/text/tokenizer/unicode.hpp"
#include "models/text/tokenizer/word_cache.hpp"

namespace twill::models {
namespace {

std::vector<std::string> texts_of(const sentencepiece_file& file) {
  std::vector<std::string> texts;
  for (const auto& piece : file.pieces)
    texts.push_back(piece.text);
  return texts;
}

class sentencepiece_model final : public word_model {
public:
  sentencepiece_model(const sentencepiece_file& file, std::string lead)
      : neighbours_(texts_of(file)), lead_(file.remove_extra_spaces ? std::move(lead) : ""),
        may_cut_(file.kind == sentencepiece_file::model_kind::bpe && file.byte_fallback &&
                 file.escape_spaces && !file.add_dummy_prefix && !file.remove_extra_spaces &&
                 !file.space_is_suffix) {}

  /// The library's status type is in different places in different versions.
  auto load(const std::string& model) {
    auto status = processor_.LoadFromSerializedProto(model);
    std::vector<int> encoded;
    if (status.ok() && !lead_.empty()) status = processor_.Encode(lead_, &encoded);
    n_lead_ids_ = encoded.size();
    return status;
  }

  result<nothing> encode(const std::vector<std::string_view>& words,
                         std::vector<token_id>& ids) const override {
    result<nothing> done{nothing{}};
    std::vector<std::string_view> parts;
    for (const std::string_view word : words) {
      const std::string marked = with_marks(word);
      cut(marked, parts);
      word_cache cache(parts.size());
      for (const std::string_view part : parts)
        cache.append(part, ids, [&](std::string_view p, std::vector<token_id>& out) {
          if (auto one = encode_part(p, out); !one.ok()) done = one;
        });
      if (!done.ok()) return done;
    }
    return done;
  }

private:
  std::string with_marks(std::string_view word) const {
    if (!may_cut_) return std::string(word);
    std::string marked;
    marked.reserve(word.size() + word.size() / 4);
    for (const char c : word)
      c == ' ' ? marked.append(space_mark) : marked.append(1, c);
    return marked;
  }

  /// Cuts a text between characters that are adjacent in no token of the vocabulary. (The
  /// SentencePiece library itself would take the whole text as one word.) The parts are encoded
  /// separately, and equal parts only once.
  void cut(std::string_view text, std::vector<std::string_view>& parts) const {
    parts.clear();
    std::size_t begin = 0, at = 0;
    while (may_cut_ && at < text.size()) {
      const std::size_t middle = at + character_length(text[at]);
      if (middle >= text.size()) break;
      if (!neighbours_.has(text, at, middle, middle + character_length(text[middle]))) {
        parts.push_back(text.substr(begin, middle - begin));
        begin = middle;
      }
      at = middle;
    }
    parts.push_back(text.substr(begin));
  }

  result<nothing> encode_part(std::string_view part, std::vector<token_id>& ids) const {
    std::vector<int> encoded;
    const bool has_space = part.starts_with(' ') || part.starts_with(space_mark);
    const std::string led = has_space && !lead_.empty() ? std::string(lead_).append(part) : "";
    const std::string_view given = led.empty() ? part : std::string_view(led);
    const auto status = processor_.Encode({given.data(), given.size()}, &encoded);
    if (!status.ok()) return failure{errc::bad_text, "text, SentencePiece: " + status.ToString()};
    const std::size_t n_skipped = led.empty() || encoded.size() < n_lead_ids_ ? 0 : n_lead_ids_;
    ids.insert(ids.end(), encoded.begin() + static_cast<std::ptrdiff_t>(n_skipped), encoded.end());
    return nothing{};
  }

  sentencepiece::SentencePieceProcessor processor_;
  neighbour_set neighbours_;
  std::string lead_; ///< prefix that makes the library keep the first space of a text
  std::size_t n_lead_ids_ = 0;
  bool may_cut_; ///< the library encodes each part as it would within the whole text
};

} // namespace

result<std::unique_ptr<const word_model>> make_sentencepiece_model(const sentencepiece_file& file,
                                                                   std::string lead) {
  auto model = std::make_unique<sentencepiece_model>(file, std::move(lead));
  std::string refused;
  try { // the library's trie may throw
    if (const auto status = model->load(file.write()); !status.ok()) refused = status.ToString();
  } catch (const std::exception& error) {
    refused = error.what();
  }
  if (!refused.empty())
    return failure{errc::bad_format, "SentencePiece model, the library refuses it: " + refused};
  return std::unique_ptr<const word_model>(std::move(model));
}

} // namespace twill::models
