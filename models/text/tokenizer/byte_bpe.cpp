#include "models/text/tokenizer/byte_bpe.hpp"

#include <utility>

#include "models/text/tokenizer/word_cache.hpp"

namespace twill::models {
namespace {

class byte_bpe final : public word_model {
public:
  explicit byte_bpe(byte_bpe_parts parts) : parts_(std::move(parts)) {}

  result<nothing> encode(const std::vector<std::string_view>& words,
                         std::vector<token_id>& ids) const override {
    word_cache cache(words.size());
    std::vector<token_id> symbols;
    for (const std::string_view word : words)
      cache.append(word, ids, [&](std::string_view w, std::vector<token_id>& out) {
        encode_word(w, symbols, out);
      });
    return nothing{};
  }

private:
  void encode_word(std::string_view word, std::vector<token_id>& symbols,
                   std::vector<token_id>& ids) const {
    if (parts_.ignore_merges) {
      if (const auto whole = parts_.words.find(word); whole != parts_.words.end()) {
        ids.push_back(whole->second);
        return;
      }
    }
    symbols.clear();
    for (const char c : word) {
      token_id id = parts_.byte_ids[static_cast<std::uint8_t>(c)];
      if (id < 0) id = parts_.unknown;
      if (id >= 0) symbols.push_back(id);
    }
    parts_.merges.merge(symbols);
    ids.insert(ids.end(), symbols.begin(), symbols.end());
  }

  byte_bpe_parts parts_;
};

} // namespace

std::unique_ptr<const word_model> make_byte_bpe(byte_bpe_parts parts) {
  return std::make_unique<byte_bpe>(std::move(parts));
}

} // namespace twill::models
