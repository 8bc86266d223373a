// A tokenizer whose tokens are single bytes and strings of two and three bytes, some of which are
// only parts of UTF-8 characters. It is for random models that have no tokenizer of their own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/text/tokenizer.hpp"

namespace twill::test {

/// Ids 0..255 are bytes. Then come two ids that end a sequence, and other control tokens, among
/// them those that enclose tool calls and reasoning. The remaining ids are tokens of several bytes.
class piece_tokenizer final : public models::tokenizer {
public:
  static constexpr models::token_id first_end = 256, second_end = 257, last_control = 263;

  explicit piece_tokenizer(std::int32_t vocab_size) {
    for (int i = 0; i < 256; ++i)
      pieces_.emplace_back(1, static_cast<char>(i));
    pieces_.insert(pieces_.end(), {"<end>", "<turn>", "<control>", "<tool_call>", "</tool_call>",
                                   "<think>", "</think>", "[TOOL_CALLS]"});
    const std::string parts[] = {"a",  "e", "i",  "o", "n",  "r",    "s",        "t",
                                 " ",  "{", "\"", "}", ":",  "\xC3", "\xC3\xA9", "\xA9",
                                 "\n", "1", "0",  "[", "\\", ",",    "\xF0\x9F", "\x98\x80"};
    for (const auto& left : parts)
      for (const auto& right : parts)
        if (pieces_.size() < static_cast<std::size_t>(vocab_size)) pieces_.push_back(left + right);
  }

  models::result<std::vector<models::token_id>>
  encode(std::string_view text, const models::encode_options& how) const override {
    return encode(text, how.parse_special, {});
  }
  models::result<std::vector<models::token_id>>
  encode_prompt(std::string_view text, const models::byte_ranges& literal) const override {
    return encode(text, true, literal);
  }
  std::string token_bytes(models::token_id id, bool special) const override {
    if (id < 0 || static_cast<std::size_t>(id) >= pieces_.size()) return {};
    return is_special(id) && !special ? std::string() : pieces_[static_cast<std::size_t>(id)];
  }
  std::int32_t vocab_size() const override { return static_cast<std::int32_t>(pieces_.size()); }
  bool is_special(models::token_id id) const override {
    return id >= first_end && id <= last_control;
  }
  const std::vector<models::token_id>& end_ids() const override { return ends_; }
  models::token_id bos_id() const override { return -1; }
  models::token_id eos_id() const override { return first_end; }
  std::string kind() const override { return "pieces"; }

private:
  std::vector<models::token_id> encode(std::string_view text, bool parse_special,
                                       const models::byte_ranges& literal) const {
    std::vector<models::token_id> ids;
    for (std::size_t at = 0; at < text.size();) {
      const auto rest = text.substr(at);
      models::token_id best = static_cast<unsigned char>(rest.front());
      for (std::size_t i = last_control + 1; i < pieces_.size(); ++i)
        if (rest.starts_with(pieces_[i]) && pieces_[i].size() > size_of(best))
          best = static_cast<models::token_id>(i);
      for (models::token_id id = first_end; parse_special && id <= last_control; ++id)
        if (rest.starts_with(pieces_[static_cast<std::size_t>(id)]) &&
            !touches(at, at + size_of(id), literal))
          best = id;
      ids.push_back(best);
      at += size_of(best);
    }
    return ids;
  }
  std::size_t size_of(models::token_id id) const {
    return pieces_[static_cast<std::size_t>(id)].size();
  }
  static bool touches(std::size_t begin, std::size_t end, const models::byte_ranges& literal) {
    return std::any_of(literal.begin(), literal.end(), [&](const auto& range) {
      return range.first < end && begin < range.second;
    });
  }

  std::vector<std::string> pieces_;
  std::vector<models::token_id> ends_{second_end, first_end};
};

} // namespace twill::test
