// output_guard decides which tokens an output that a grammar constrains may hold next. Over random
// outputs, its mask and the tokens that it accepts are those of a grammar matcher that reads the
// whole output anew each time.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/executor/output_guard.hpp"
#include "tests/catch.hpp"
#include "tests/models/text/grammar/byte_vocabulary.hpp"
#include "tests/support/operations.hpp"

using namespace twill;
using namespace twill::test;
namespace grammar = models::grammar;
using actors::output_guard;
using actors::output_rules;

namespace {

const std::string reasoning_end = "</t>";
constexpr std::int32_t begin_of_reasoning = 257;

/// The bytes, an end, a token that begins reasoning, and pieces that go on behind "</t>".
const grammar::vocabulary_ptr& tokens() {
  static const auto made = [] {
    auto bytes = byte_vocabulary()->bytes;
    bytes.emplace_back(); // begin_of_reasoning
    for (const char* piece : {"</",       "t>",        "/t>{",
                              "t> \n[",   ">  ",       "</t>{1",
                              "   ",      " \n",       "        ",
                              "\"a\"",    "{1",        "[",
                              "]",        "1}",        "\\\"",
                              "a\" ",     "</t",       "</</t>",
                              "</t>[\"a", "t>{      ", "                                "})
      bytes.emplace_back(piece);
    return make_vocabulary(std::move(bytes), {end_of_answer});
  }();
  return made;
}

grammar::compiled_grammar_ptr grammar_at(std::uint32_t number) {
  static const auto all = [] {
    std::vector<grammar::compiled_grammar_ptr> made;
    for (const char* pattern : {R"(\{1?[ \n]*1?\}[ \n]*)", R"(\[([ \n]*"[a\\" \n]*"[ \n]*,?)*\])",
                                R"([ \n]{3,70}[a\["])", R"((\{1\}|\[\]|"a"))"}) {
      config::grammar_spec spec;
      spec.kind = config::grammar_kind::regex;
      spec.text = pattern;
      made.push_back(compiled(spec, tokens()).value());
    }
    return made;
  }();
  return all[number % all.size()];
}

/// Bytes of white space between the parts at the end of a JSON text; 0 within a string.
std::size_t space_at_end(const std::string& text) {
  bool in_string = false;
  std::size_t space = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (in_string && text[i] == '\\') {
      ++i;
      continue;
    }
    if (text[i] == '"') in_string = !in_string;
    const bool blank = std::string_view(" \n\t\r").find(text[i]) != std::string_view::npos;
    space = blank && !in_string ? space + 1 : 0;
  }
  return in_string ? 0 : space;
}

/// An output, read anew from its first token as the rules define it.
class plain_output {
public:
  explicit plain_output(const output_rules& rules) : rules_(rules) {}

  /// False where the token may not follow; the output must not be used after that.
  bool accept(std::int32_t token) {
    ids_.push_back(token);
    return read().has_value();
  }
  /// A bit for each token that may follow.
  std::vector<bool> may_follow() const {
    auto at = read();
    const auto n = static_cast<std::size_t>(tokens()->size());
    std::vector<bool> mask(n, true);
    if (at->reasons) {
      mask[end_of_answer] = false;
      return mask;
    }
    std::vector<std::int32_t> words(mask_words(tokens()->size()));
    at->matcher->fill_next_mask(words);
    bool others = false;
    for (std::size_t id = 0; id < n; ++id) {
      mask[id] = allows(words, static_cast<std::int32_t>(id));
      others = others || (mask[id] && !is_space(id));
    }
    for (std::size_t id = 0; id < n && others; ++id)
      if (rules_.is_json && space_at_end(at->answer) >= 64 && is_space(id)) mask[id] = false;
    if (ids_.empty() && rules_.reasoning_begin_token >= 0 && !rules_.begins_in_reasoning)
      mask[static_cast<std::size_t>(rules_.reasoning_begin_token)] = true;
    return mask;
  }
  bool is_over() const {
    auto at = read();
    return !at->reasons && at->matcher->is_terminated();
  }

private:
  struct place {
    bool reasons = false;
    std::optional<grammar::matcher> matcher;
    std::string answer;
  };

  static bool is_space(std::size_t id) {
    const auto& bytes = tokens()->bytes[id];
    return !bytes.empty() && bytes.find_first_not_of(" \n\t\r") == std::string::npos;
  }

  /// Reads all tokens; nothing where the last token may not follow.
  std::optional<place> read() const {
    place at;
    at.matcher.emplace(rules_.grammar);
    at.reasons = rules_.begins_in_reasoning;
    std::string thoughts;
    for (std::size_t i = 0; i < ids_.size(); ++i) {
      const std::string& bytes = tokens()->bytes[static_cast<std::size_t>(ids_[i])];
      if (i == 0 && !at.reasons && rules_.reasoning_begin_token == ids_[i]) {
        at.reasons = true;
      } else if (at.reasons) {
        thoughts += bytes;
        const auto end = thoughts.find(reasoning_end);
        if (end == std::string::npos) continue;
        at.reasons = false;
        std::string rest = thoughts.substr(end + reasoning_end.size());
        while (!rest.empty() &&
               std::string_view(" \n\t\r").find(rest.front()) != std::string_view::npos)
          rest.erase(0, 1);
        if (!rest.empty() && !at.matcher->accept_text(rest)) return std::nullopt;
        at.answer += rest;
      } else {
        if (!at.matcher->accept(ids_[i])) return std::nullopt;
        at.answer += bytes;
      }
    }
    return at;
  }

  const output_rules& rules_;
  std::vector<std::int32_t> ids_;
};

/// The first operation selects the rules; each later one draws a token, mostly an allowed one.
void check_guard(const operations& sequence) {
  if (sequence.empty()) return;
  const operation& first = sequence.front();
  const auto rules = std::make_shared<output_rules>();
  rules->tokens = tokens();
  rules->grammar = grammar_at(first.a);
  rules->is_json = first.b % 2 == 0;
  rules->reasoning_end = reasoning_end;
  rules->begins_in_reasoning = first.c % 3 == 1;
  if (first.c % 3 == 2) rules->reasoning_begin_token = begin_of_reasoning;
  output_guard guard(rules);
  plain_output plain(*rules);
  std::vector<std::uint32_t> mask(mask_words(tokens()->size()));
  for (std::size_t i = 1; i < sequence.size(); ++i) {
    const operation& o = sequence[i];
    demand(guard.is_over() == plain.is_over(), "the end is not where it should be");
    if (plain.is_over()) return;
    guard.fill_mask(mask);
    const auto wanted = plain.may_follow();
    std::vector<std::int32_t> may;
    for (std::size_t id = 0; id < wanted.size(); ++id) {
      const bool allowed = (mask[id / 32] >> (id % 32) & 1) != 0;
      demand(allowed == wanted[id], "token " + std::to_string(id) + " may " +
                                        (allowed ? "follow" : "not follow") + " after " +
                                        std::to_string(i - 1) + " tokens");
      // Pieces of several bytes and the end come more often than bytes.
      if (allowed && (id >= end_of_answer || o.kind % 3 == 0))
        may.push_back(static_cast<std::int32_t>(id));
    }
    if (may.empty()) return;
    const std::int32_t token =
        o.kind % 16 == 15
            ? static_cast<std::int32_t>(o.b % static_cast<std::uint32_t>(wanted.size()))
            : may[o.b % may.size()];
    const bool accepted = guard.accept(token);
    demand(accepted == plain.accept(token),
           "token " + std::to_string(token) + " is " + (accepted ? "accepted" : "refused"));
    if (!accepted) return;
  }
}

} // namespace

TEST_CASE("a guard allows and accepts what the whole output so far lets follow", "[actors]") {
  CHECK(first_failure({4000, 100'000, 40}, check_guard) == "");
}
