// A detokenizer streams text in pieces. The pieces add up to the text of decoding all ids at once,
// wherever the sequence of ids ends, for every kind of tokenizer and for ids that are not valid
// text.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "models/text/detokenizer.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/folder_text.hpp"
#include "tests/paths.hpp"

using namespace twill;
using namespace twill::models;

namespace {

/// The length of the valid UTF-8 character at `at`, by its code point; 0 if there is none.
std::size_t valid_length(const std::string& bytes, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0U;
  };
  const unsigned lead = byte(at);
  if (lead < 0x80) return 1;
  const std::size_t n = lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : lead >> 3 == 30 ? 4 : 0;
  unsigned code = lead & (0x7FU >> n);
  for (std::size_t i = 1; i < n; ++i) {
    if (byte(at + i) >> 6 != 2) return 0;
    code = code << 6 | (byte(at + i) & 0x3F);
  }
  const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
  return n == 0 || code < least[n] || code > 0x10FFFF || code >> 11 == 0x1B ? 0 : n;
}

/// Whether a valid character may begin with the `n` bytes at `at`.
bool is_beginning(const std::string& bytes, std::size_t at, std::size_t n) {
  std::string start = bytes.substr(at, n);
  for (int more = 1; more < 4; ++more)
    for (const char second : {'\x80', '\x90', '\xA0'}) {
      std::string full = start + second + std::string(static_cast<std::size_t>(more - 1), '\x80');
      if (valid_length(full, 0) == full.size()) return true;
    }
  return false;
}

/// Python's bytes.decode(errors="replace").
std::string decode_naively(const std::string& bytes) {
  std::string out;
  for (std::size_t at = 0; at < bytes.size();) {
    if (const std::size_t n = valid_length(bytes, at); n > 0) {
      out += bytes.substr(at, n);
      at += n;
      continue;
    }
    std::size_t n = 1;
    while (n < 3 && at + n < bytes.size() && is_beginning(bytes, at, n + 1))
      ++n;
    at += n;
    out += "\xEF\xBF\xBD";
  }
  return out;
}

} // namespace

TEST_CASE("streamed pieces are the whole decode, wherever a sequence of ids ends") {
  const std::vector<std::pair<std::string, std::string>> kinds = {{"opt-bpe", "opt"},
                                                                  {"llama-spm", "llama"},
                                                                  {"fast-bytelevel-gpt2", "llama"},
                                                                  {"qwen-tiktoken", "qwen"},
                                                                  {"fast-spm-metaspace", "llama"},
                                                                  {"chatglm3-spm", "chatglm"},
                                                                  {"baichuan2-spm", "baichuan"}};
  for (const auto& [kind, family] : kinds) {
    const auto opened = test::open_folder_text(test::golden_dir() + "/tokenizers/" + kind, family);
    REQUIRE(opened.ok());
    const tokenizer& source = *opened.value();
    std::mt19937 random(5);
    for (int i = 0; i < 300; ++i) {
      const bool skip_special = random() % 2 == 0, at_start = random() % 3 != 0;
      // Tokens below 300 are single bytes in many vocabularies, which make broken characters.
      const auto some_id = [&] {
        const auto n = static_cast<std::uint32_t>(source.vocab_size());
        const std::uint32_t ends[] = {n, n, n, 300U, 300U, 3U}; // the first ids are often special
        return static_cast<token_id>(random() % std::min(n, ends[random() % 6]));
      };
      const std::vector<token_id> shown = {1, some_id()};
      detokenizer stream(source, skip_special, at_start, shown);
      std::string bytes, streamed;
      bool is_first = at_start;
      std::vector<token_id> ids;
      for (auto left = random() % 30; left > 0; --left) {
        const token_id id = some_id();
        ids.push_back(id);
        const bool is_shown = std::find(shown.begin(), shown.end(), id) != shown.end();
        std::string part = source.token_bytes(id, !skip_special || is_shown);
        if (is_first && !part.empty()) {
          is_first = false;
          if (source.drops_leading_space(id)) part.erase(0, 1);
        }
        bytes += part;
        streamed += stream.push(id);
        detokenizer ended = stream; // as if the sequence ended here
        CAPTURE(kind, ids);
        REQUIRE(streamed + ended.flush() == decode_naively(bytes));
        REQUIRE(ended.flush().empty());
        // The only bytes held back are those of an unfinished character.
        REQUIRE(decode_naively(bytes).starts_with(streamed));
        if (!bytes.empty() && valid_length(bytes, bytes.size() - 1) == 1)
          REQUIRE(streamed == decode_naively(bytes));
      }
      if (at_start) {
        const std::string whole = source.decode(ids, skip_special);
        detokenizer plain(source, skip_special);
        std::string out;
        for (const token_id id : ids)
          out += plain.push(id);
        REQUIRE(out + plain.flush() == whole);
      }
    }
  }
}
