// A tokenizer of bytes and of pieces of two and three bytes, parts of characters among them, for
// random models that bring none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/text/tokenizer.hpp"

namespace twill::test {

/// Ids 0..255 are bytes; then come two ids that end a sequence, a control token, and the pieces.
class piece_tokenizer final : public models::tokenizer {
public:
  static constexpr models::token_id first_end = 256, second_end = 257, control = 258;

  explicit piece_tokenizer(std::int32_t vocab_size) {
    for (int i = 0; i < 256; ++i)
      pieces_.emplace_back(1, static_cast<char>(i));
    pieces_.insert(pieces_.end(), {"<end>", "<turn>", "<control>"});
    const std::string parts[] = {"a",  "e", "i",  "o", "n",  "r",    "s",        "t",
                                 " ",  "{", "\"", "}", ":",  "\xC3", "\xC3\xA9", "\xA9",
                                 "\n", "1", "0",  "[", "\\", ",",    "\xF0\x9F", "\x98\x80"};
    for (const auto& left : parts)
      for (const auto& right : parts)
        if (pieces_.size() < static_cast<std::size_t>(vocab_size)) pieces_.push_back(left + right);
  }

  models::result<std::vector<models::token_id>>
  encode(std::string_view text, const models::encode_options&) const override {
    std::vector<models::token_id> ids;
    while (!text.empty()) {
      models::token_id best = static_cast<unsigned char>(text.front());
      for (std::size_t i = control + 1; i < pieces_.size(); ++i)
        if (text.starts_with(pieces_[i]) &&
            pieces_[i].size() > pieces_[static_cast<std::size_t>(best)].size())
          best = static_cast<models::token_id>(i);
      ids.push_back(best);
      text.remove_prefix(pieces_[static_cast<std::size_t>(best)].size());
    }
    return ids;
  }
  models::result<std::vector<models::token_id>>
  encode_prompt(std::string_view text, const models::byte_ranges&) const override {
    return encode(text, {});
  }
  std::string token_bytes(models::token_id id, bool special) const override {
    if (id < 0 || static_cast<std::size_t>(id) >= pieces_.size()) return {};
    return is_special(id) && !special ? std::string() : pieces_[static_cast<std::size_t>(id)];
  }
  std::int32_t vocab_size() const override { return static_cast<std::int32_t>(pieces_.size()); }
  bool is_special(models::token_id id) const override { return id >= first_end && id <= control; }
  const std::vector<models::token_id>& end_ids() const override { return ends_; }
  models::token_id bos_id() const override { return -1; }
  models::token_id eos_id() const override { return first_end; }
  std::string kind() const override { return "pieces"; }

private:
  std::vector<std::string> pieces_;
  std::vector<models::token_id> ends_{second_end, first_end};
};

} // namespace twill::test
