// output_guard decides which tokens an output that a grammar constrains may hold next. It allows
// the same tokens as a reference that reads the whole output anew at every token.
#include "actors/executor/output_guard.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/executor/json_space.hpp"
#include "models/text/grammar/compile.hpp"
#include "tests/catch.hpp"
#include "tests/models/text/grammar/byte_vocabulary.hpp"
#include "tests/support/operations.hpp"

using namespace twill;
using namespace twill::actors;
using namespace twill::test;

namespace {

/// Beside the bytes and the end: tokens that hold parts of the end of reasoning and of answers.
constexpr std::int32_t begin_of_reasoning = 257;
const std::vector<std::string> more{"", "t>", "</", "/t> \na", "></t>ab", "</t>c", "ab", "< "};
const std::string end_of_reasoning = "</t>";

std::shared_ptr<output_rules> make_rules() {
  auto rules = std::make_shared<output_rules>();
  std::vector<std::string> bytes = byte_vocabulary()->bytes;
  bytes.insert(bytes.end(), more.begin(), more.end());
  rules->tokens = models::grammar::make_vocabulary(std::move(bytes), {end_of_answer});
  config::grammar_spec spec;
  spec.kind = config::grammar_kind::regex;
  spec.text = "[ab]{1,4}";
  models::grammar::grammar_compiler compiler(rules->tokens, {});
  rules->grammar = compiler.compile(spec, [] { return false; }).value();
  rules->reasoning_end = end_of_reasoning;
  return rules;
}

class plain_guard {
public:
  plain_guard(std::shared_ptr<const output_rules> rules) : rules_(std::move(rules)) {}

  /// Whether the rules allow the output with this token too.
  bool accept(std::int32_t token) {
    output_.push_back(token);
    const auto answer = read();
    return !answer || (is_prefix(*answer) && (!ended() || !answer->empty()));
  }
  bool is_over() const { return ended() && read().has_value(); }
  bool allows(std::int32_t token) const {
    const auto answer = read();
    if (!answer) return token != end_of_answer;
    if (output_.empty() && token == rules_->reasoning_begin_token) return true;
    if (token == end_of_answer) return !answer->empty();
    const std::string& bytes = rules_->tokens->bytes[static_cast<std::size_t>(token)];
    return !bytes.empty() && is_prefix(*answer + bytes);
  }

private:
  static bool is_prefix(const std::string& answer) {
    return answer.size() <= 4 && answer.find_first_not_of("ab") == std::string::npos;
  }
  bool ended() const { return !output_.empty() && output_.back() == end_of_answer; }

  /// The answer; nothing while the output reasons.
  std::optional<std::string> read() const {
    std::size_t first = 0;
    bool reasons = rules_->begins_in_reasoning;
    if (!reasons && rules_->reasoning_begin_token >= 0 && !output_.empty() &&
        output_.front() == rules_->reasoning_begin_token) {
      reasons = true;
      first = 1;
    }
    std::string text;
    for (std::size_t i = first; i < output_.size(); ++i) {
      text += rules_->tokens->bytes[static_cast<std::size_t>(output_[i])];
      const auto end = reasons ? text.find(end_of_reasoning) : std::string::npos;
      if (end == std::string::npos) continue;
      reasons = false;
      text = text.substr(end + end_of_reasoning.size());
      // White space that follows the end in the same token does not belong to the answer.
      while (!text.empty() && (text[0] == ' ' || text[0] == '\n'))
        text.erase(0, 1);
    }
    return reasons ? std::nullopt : std::optional(text);
  }

  std::shared_ptr<const output_rules> rules_;
  std::vector<std::int32_t> output_;
};

void play(const output_rules& all, const operations& sequence) {
  if (sequence.empty()) return;
  auto rules = std::make_shared<output_rules>(all);
  rules->begins_in_reasoning = sequence.front().kind % 3 == 0;
  if (sequence.front().kind % 3 == 1) rules->reasoning_begin_token = begin_of_reasoning;
  output_guard guard(rules);
  plain_guard twin(rules);
  const std::string likely = "ab</t> \nc";
  std::vector<std::int32_t> tokens{end_of_answer};
  for (const char c : likely)
    tokens.push_back(static_cast<unsigned char>(c));
  for (std::size_t i = 0; i < more.size(); ++i)
    tokens.push_back(begin_of_reasoning + static_cast<std::int32_t>(i));
  for (std::size_t i = 1; i < sequence.size() && !guard.is_over(); ++i) {
    std::vector<std::uint32_t> mask(
        static_cast<std::size_t>(models::grammar::mask_words(rules->tokens->size())));
    guard.fill_mask(mask);
    std::vector<std::int32_t> allowed;
    for (const std::int32_t id : tokens) {
      const bool is = (mask[static_cast<std::size_t>(id) / 32] >> (id % 32) & 1) != 0;
      demand_equal(is, twin.allows(id), "whether token " + std::to_string(id) + " may follow");
      if (is) allowed.push_back(id);
    }
    // Draw an allowed token in most cases.
    const operation& op = sequence[i];
    const std::int32_t token = op.b % 16 > 0 && !allowed.empty() ? allowed[op.a % allowed.size()]
                                                                 : tokens[op.a % tokens.size()];
    if (twin.allows(token)) {
      const bool accepted = guard.accept(token);
      demand_equal(accepted, twin.accept(token), "whether a token is accepted");
      if (!accepted) return; // the token ends reasoning, and a wrong answer follows in it
    } else if (token != end_of_answer) {
      demand(!guard.accept(token), "a token that is not allowed is accepted");
      return;
    }
    demand_equal(guard.is_over(), twin.is_over(), "whether the output is over");
  }
}

/// White space at the end of a text, read from its beginning.
int space_at_end(const std::string& text) {
  int space = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i)
        if (text[i] == '\\') ++i;
      if (i >= text.size()) return -1; // the text ends within a string
      space = 0;
    } else {
      space = std::string(" \n\r\t").find(text[i]) == std::string::npos ? 0 : space + 1;
    }
  }
  return space;
}

void play_space(const operations& sequence) {
  json_space space;
  std::string text;
  constexpr const char* parts[] = {" ", "\n\r\t", "\"", "\\", "x", "\\\"", "{"};
  for (const operation& op : sequence) {
    std::string part = parts[op.kind % 7];
    // White space of 62 to 65 bytes, close to the limit of 64.
    if (op.a % 4 == 0) part = std::string(62 + op.b % 4, ' ');
    text += part;
    space.push(part);
    demand_equal(space.is_enough(), space_at_end(text) >= most_json_space_bytes,
                 "whether white space is enough");
  }
}

} // namespace

TEST_CASE("an output is guarded as by reading all of it anew") {
  const auto rules = make_rules();
  CHECK(first_failure({.cases = 1000, .long_cases = 50'000, .most_operations = 30},
                      [&](const operations& sequence) { play(*rules, sequence); }) == "");
}

TEST_CASE("white space at the end of a JSON text is counted as from its beginning") {
  CHECK(first_failure({.cases = 1000, .long_cases = 50'000}, play_space) == "");
}
