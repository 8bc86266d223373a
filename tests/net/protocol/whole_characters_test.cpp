// However bytes are cut into parts, the output has all of the bytes, cut only between characters.
#include "net/protocol/whole_characters.hpp"

#include "net/protocol/json/utf8.hpp"
#include "tests/catch.hpp"
#include "tests/support/operations.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::test;

namespace {

/// Characters of each length, with the first and the last of every range of lead bytes.
std::string character(std::uint32_t which) {
  static const std::string all[] = {"a",
                                    "\x7F",
                                    "\xC2\x80",
                                    "\xDF\xBF",
                                    "\xE0\xA0\x80",
                                    "\xE0\xBF\xBF",
                                    "\xE2\x82\xAC",
                                    "\xED\x80\x80",
                                    "\xED\x9F\xBF",
                                    "\xEF\xBF\xBD",
                                    "\xF0\x90\x80\x80",
                                    "\xF0\xBF\xBF\xBF",
                                    "\xF1\x80\x80\x80",
                                    "\xF4\x80\x80\x80",
                                    "\xF4\x8F\xBF\xBF"};
  return all[which % std::size(all)];
}

std::string in_parts(const std::string& text, const operations& sequence, bool is_text) {
  whole_characters characters;
  std::string all;
  std::size_t at = 0;
  for (std::size_t i = 0; at < text.size(); ++i) {
    const auto n = sequence.empty() ? 1 : 1 + sequence[i % sequence.size()].b % 5;
    const auto part = characters.push(text.substr(at, n));
    if (is_text)
      demand(find_invalid_utf8(part) == std::string_view::npos, "a part is of whole characters");
    all += part;
    at += n;
  }
  const auto kept = characters.flush();
  demand(kept.size() <= 3, "what is kept is part of one character");
  demand(!is_text || kept.empty(), "a whole text leaves nothing");
  demand(characters.flush().empty(), "it is given once");
  return all + kept;
}

void play_characters(const operations& sequence) {
  std::string text, bytes;
  for (const auto& op : sequence) {
    text += character(op.a);
    bytes += op.kind % 3 == 0 ? std::string(1, static_cast<char>(op.c)) : character(op.a);
  }
  demand(in_parts(text, sequence, true) == text, "the parts are the text");
  demand(in_parts(bytes, sequence, false) == bytes, "the parts are the bytes");
}

} // namespace

TEST_CASE("Bytes that come in parts are given in whole characters") {
  CHECK(first_failure({.cases = 500, .long_cases = 50'000, .most_operations = 20},
                      play_characters) == "");
}

TEST_CASE("Bytes that can become no character are not kept") {
  whole_characters characters;
  for (const auto* bytes :
       {"\x80", "\xC0", "\xC1", "\xE0\x80", "\xED\xA0", "\xF0\x8F", "\xF4\x90", "\xF5", "\xFF"})
    CHECK(characters.push(bytes) == bytes);
  for (const auto* begun : {"\xC2", "\xE0", "\xE0\xA0", "\xED", "\xED\x9F", "\xF0", "\xF0\x90",
                            "\xF0\x90\x80", "\xF4", "\xF4\x8F\xBF"}) {
    CHECK(characters.push(begun) == "");
    CHECK(characters.flush() == begun);
  }
}
