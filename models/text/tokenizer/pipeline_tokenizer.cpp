#include "models/text/tokenizer/pipeline_tokenizer.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "models/text/detokenizer.hpp"
#include "models/text/text_limits.hpp"

namespace twill::models {
namespace {

/// The limits of the text are checked each time this many words have been encoded.
constexpr std::size_t words_at_once = 8192;

class pipeline_tokenizer final : public tokenizer {
public:
  explicit pipeline_tokenizer(pipeline_parts parts) : parts_(std::move(parts)) {}

  result<std::vector<token_id>> encode(std::string_view text,
                                       const encode_options& options) const override {
    std::vector<token_id> ids;
    if (options.add_special) ids = parts_.prefix;
    const unsigned classes =
        options.parse_special ? special_plain | special_control : special_plain;
    if (auto done = encode_text(text, classes, {}, ids); !done.ok()) return done.error();
    if (options.add_special) ids.insert(ids.end(), parts_.suffix.begin(), parts_.suffix.end());
    return ids;
  }

  result<std::vector<token_id>> encode_prompt(std::string_view text,
                                              const byte_ranges& literal) const override {
    std::vector<token_id> ids = parts_.prefix;
    const unsigned classes = special_plain | special_control | special_template;
    auto done = encode_text(text, classes, literal, ids);
    if (!done.ok()) return done.error();
    const auto n = static_cast<std::ptrdiff_t>(parts_.prefix.size());
    const bool is_doubled = static_cast<std::ptrdiff_t>(ids.size()) >= 2 * n &&
                            std::equal(ids.begin(), ids.begin() + n, ids.begin() + n);
    if (is_doubled) ids.erase(ids.begin(), ids.begin() + n); // the template wrote the prefix
    return ids;
  }

  std::string token_bytes(token_id id, bool special) const override {
    if (id < 0 || id >= vocab_size() || (!special && is_special(id))) return {};
    return parts_.bytes[static_cast<std::size_t>(id)];
  }

  bool drops_leading_space(token_id id) const override {
    return id >= 0 && static_cast<std::size_t>(id) < parts_.drops_space.size() &&
           parts_.drops_space[static_cast<std::size_t>(id)];
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
  result<nothing> encode_text(std::string_view text, unsigned classes, const byte_ranges& literal,
                              std::vector<token_id>& ids) const {
    if (!is_utf8(text)) return failure{errc::bad_text, "text, must be valid UTF-8"};
    word_list words;
    std::size_t from = 0;
    bool at_start = true;
    auto range = literal.begin();
    while (from < text.size()) {
      const auto found = parts_.specials.find(text, from, classes, literal);
      const std::size_t end = found ? found->begin : text.size();
      // An empty literal range means that encoding starts afresh at that position.
      for (; range != literal.end() && range->first < end; ++range) {
        if (range->first != range->second || range->first < from) continue;
        auto done = encode_segment(text.substr(from, range->first - from), at_start, words, ids);
        if (!done.ok()) return done;
        from = range->first;
        at_start = true;
      }
      auto done = encode_segment(text.substr(from, end - from), at_start, words, ids);
      if (!done.ok() || !found || is_enough(ids)) return done;
      ids.push_back(found->id);
      from = found->end;
      at_start = parts_.restarts_after_special && !found->joins;
    }
    return nothing{};
  }

  result<nothing> encode_segment(std::string_view text, bool at_start, word_list& words,
                                 std::vector<token_id>& ids) const {
    if (text.empty()) return nothing{};
    if (parts_.normal.empty()) return encode_plain(text, at_start, words, ids);
    auto normal = parts_.normal.apply(text);
    if (!normal.ok()) return normal.error();
    const std::string_view changed = normal.value();
    std::size_t from = 0;
    while (auto found = parts_.normalized.find(changed, from, special_plain, {})) {
      auto done = encode_plain(changed.substr(from, found->begin - from), at_start, words, ids);
      if (!done.ok()) return done;
      ids.push_back(found->id);
      from = found->end;
      at_start = false;
    }
    return encode_plain(changed.substr(from), at_start, words, ids);
  }

  result<nothing> encode_plain(std::string_view text, bool at_start, word_list& words,
                               std::vector<token_id>& ids) const {
    auto cut = parts_.words_of.split(text, at_start, words);
    if (!cut.ok() || words.words.empty()) return cut;
    if (words.words.size() <= words_at_once) return parts_.model->encode(words.words, ids);
    std::vector<std::string_view> some;
    for (std::size_t i = 0; i < words.words.size() && !is_enough(ids); i += words_at_once) {
      const auto first = words.words.begin() + static_cast<std::ptrdiff_t>(i);
      const std::size_t n = std::min(words_at_once, words.words.size() - i);
      some.assign(first, first + static_cast<std::ptrdiff_t>(n));
      if (auto done = parts_.model->encode(some, ids); !done.ok()) return done;
    }
    return nothing{};
  }

  static bool is_enough(const std::vector<token_id>& ids) {
    return ids.size() > text_limits::most_ids() || text_limits::unwanted();
  }

  pipeline_parts parts_;
};

} // namespace

std::shared_ptr<const tokenizer> make_pipeline_tokenizer(pipeline_parts parts) {
  return std::make_shared<pipeline_tokenizer>(std::move(parts));
}

} // namespace twill::models
