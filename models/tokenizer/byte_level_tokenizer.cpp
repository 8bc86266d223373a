#include "models/tokenizer/byte_level_tokenizer.hpp"

#include <cstddef>
#include <utility>

#include "models/detokenizer.hpp"

namespace twill::models {
namespace {

class byte_level_tokenizer final : public tokenizer {
public:
  explicit byte_level_tokenizer(byte_level_parts parts) : parts_(std::move(parts)) {}

  result<std::vector<token_id>> encode(std::string_view text,
                                       const encode_options& options) const override {
    std::vector<token_id> ids;
    if (options.add_special) ids = parts_.prefix;
    const unsigned classes =
        options.parse_special ? special_plain | special_control : special_plain;
    if (auto done = encode_pieces(text, classes, {}, ids); !done.ok()) return done.error();
    if (options.add_special) ids.insert(ids.end(), parts_.suffix.begin(), parts_.suffix.end());
    return ids;
  }

  result<std::vector<token_id>> encode_prompt(std::string_view text,
                                              const byte_ranges& literal) const override {
    std::vector<token_id> ids;
    auto done = encode_pieces(text, special_plain | special_control, literal, ids);
    if (!done.ok()) return done.error();
    return ids;
  }

  std::string token_bytes(token_id id, bool special) const override {
    if (id < 0 || id >= vocab_size() || (!special && is_special(id))) return {};
    return parts_.bytes[static_cast<std::size_t>(id)];
  }

  std::int32_t vocab_size() const override {
    return static_cast<std::int32_t>(parts_.bytes.size());
  }
  bool is_special(token_id id) const override {
    return id >= 0 && id < vocab_size() && parts_.special[static_cast<std::size_t>(id)];
  }
  const std::vector<token_id>& end_ids() const override { return parts_.end_ids; }
  token_id bos_id() const override { return parts_.bos; }
  token_id eos_id() const override { return parts_.eos; }
  std::string kind() const override { return parts_.kind; }

private:
  result<nothing> encode_pieces(std::string_view text, unsigned classes, const byte_ranges& literal,
                                std::vector<token_id>& ids) const {
    if (!is_utf8(text)) return failure{errc::bad_text, "text, must be valid UTF-8"};
    std::size_t from = 0;
    while (auto found = parts_.specials.find(text, from, classes, literal)) {
      auto done = encode_plain(text.substr(from, found->begin - from), ids);
      if (!done.ok()) return done;
      ids.push_back(found->id);
      from = found->end;
    }
    return encode_plain(text.substr(from), ids);
  }

  result<nothing> encode_plain(std::string_view text, std::vector<token_id>& ids) const {
    std::vector<std::string_view> words;
    if (auto cut = parts_.words_of->split(text, words); !cut.ok()) return cut;
    std::vector<token_id> symbols;
    for (const std::string_view word : words) {
      if (parts_.ignore_merges) {
        if (const auto whole = parts_.words.find(word); whole != parts_.words.end()) {
          ids.push_back(whole->second);
          continue;
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
    return nothing{};
  }

  byte_level_parts parts_;
};

} // namespace

std::shared_ptr<const tokenizer> make_byte_level_tokenizer(byte_level_parts parts) {
  return std::make_shared<byte_level_tokenizer>(std::move(parts));
}

} // namespace twill::models
