#include "models/tokenizer/sentencepiece_model.hpp"

#include <sentencepiece_processor.h>

#include <exception>
#include <string>

namespace twill::models {
namespace {

class sentencepiece_model final : public word_model {
public:
  sentencepiece::util::Status load(const std::string& model) {
    return processor_.LoadFromSerializedProto(model);
  }

  result<nothing> encode(const std::vector<std::string_view>& words,
                         std::vector<token_id>& ids) const override {
    std::vector<int> encoded;
    for (const std::string_view word : words) {
      const auto status = processor_.Encode({word.data(), word.size()}, &encoded);
      if (!status.ok()) return failure{errc::bad_text, "text, SentencePiece: " + status.ToString()};
      ids.insert(ids.end(), encoded.begin(), encoded.end());
    }
    return nothing{};
  }

private:
  sentencepiece::SentencePieceProcessor processor_;
};

} // namespace

result<std::unique_ptr<const word_model>> make_sentencepiece_model(const sentencepiece_file& file) {
  auto model = std::make_unique<sentencepiece_model>();
  std::string refused;
  try { // its trie throws
    if (const auto status = model->load(file.write()); !status.ok()) refused = status.ToString();
  } catch (const std::exception& error) {
    refused = error.what();
  }
  if (!refused.empty())
    return failure{errc::bad_format, "SentencePiece model, the library refuses it: " + refused};
  return std::unique_ptr<const word_model>(std::move(model));
}

} // namespace twill::models
