#include "tests/actors/meaning/asked.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <random>
#include <string>
#include <utility>

namespace twill::test {
namespace {

using ids = std::vector<std::int32_t>;
using grammar_kind = config::grammar_kind;

constexpr int longest_prompt = 72, longest_output = 40;
constexpr int longest_call = 56;
constexpr std::size_t most_biases = 1024;

/// A request to which wishes, such as a penalty or a grammar, are added one after the other.
class wishes {
public:
  wishes(const operation& numbers, const small_model& model)
      : model_(*model.files), chats_(model.chats), random_(numbers.a), context_(context_of(model)),
        most_prompt_(std::min(longest_prompt, context_ / 2)) {
    const int length = 1 + static_cast<int>(numbers.c) % most_prompt_;
    // Many prompts begin as others do, and some tokens stand several times in them.
    std::mt19937 text(numbers.a % 3);
    for (int i = 0; i < length; ++i)
      prompt_.push_back(i % 3 == 2 ? prompt_[static_cast<std::size_t>(i / 2)] : any_token(text));
    asked.prompt = prompt_;
    asked.sampling.seed = seed_ = numbers.a;
    asked.sampling.temperature = 0.5f + 0.25f * static_cast<float>(below(5));
    asked.sampling.max_tokens = 1 + static_cast<int>(numbers.c / 64) % longest_output;
  }

  /// Makes the request a chat, with tools or not, and asks for its output in parts.
  void take_kind(std::uint32_t number) {
    // A random sequence of its own does not change the numbers that other wishes draw.
    std::mt19937 random(asked.sampling.seed.value_or(0) + number);
    if (number % 5 == 1 || number % 5 == 2)
      take_chat(random, chats_, *model_.text, static_cast<std::size_t>(most_prompt_), context_,
                asked);
    const bool is_chat = number % 5 != 0 && number % 5 < 3;
    asked.parse_output = number % 5 == 3 || (is_chat && random() % 3 != 0);
    if (must_call()) asked.sampling.max_tokens = longest_call;
    if ((asked.parse_output || must_call()) && random() % 2 == 0) like_marks(random);
  }

  /// Adds a wish that depends on no output. False if no such wish has this number.
  bool take(std::uint32_t number) {
    auto& s = asked.sampling;
    switch (number) {
    case 1:
      s.repetition_penalty = std::array{1.1f, 1.6f, 3.0f, 0.6f}[below(4)];
      return true;
    case 2:
      s.presence_penalty = std::array{0.7f, 2.0f, -1.0f}[below(3)];
      return true;
    case 3:
      s.frequency_penalty = std::array{0.4f, 2.0f, -0.3f}[below(3)];
      return true;
    case 4:
      s.repetition_penalty = 1.3f;
      s.presence_penalty = 0.5f;
      s.frequency_penalty = 0.8f;
      return true;
    case 5:
      s.logprobs = static_cast<std::int32_t>(below(5));
      return true;
    case 6:
      asked.prompt_logprobs = static_cast<std::int32_t>(below(4));
      return true;
    case 7:
    case 8:
      s.n = 2 + static_cast<std::int32_t>(below(3));
      return true;
    case 9:
      below(2) == 0 ? s.temperature = 0 : s.top_p = 0;
      if (below(2) == 0) s.seed.reset();
      return true;
    case 10:
      s.top_k = 1 + static_cast<std::int32_t>(below(12));
      return true;
    case 11:
      s.top_p = std::array{0.3f, 0.8f, 0.97f}[below(3)];
      return true;
    case 12:
      s.min_p = std::array{0.02f, 0.2f, 1.0f}[below(3)];
      return true;
    case 13:
      s.min_tokens = 1 + static_cast<std::int32_t>(below(20));
      like_ends();
      return true;
    case 14:
      s.ignore_eos = true;
      like_ends();
      return true;
    case 15:
      like_ends();
      return true;
    case 16:
      s.skip_special_tokens = false;
      return true;
    case 17:
      asked.echo_prompt_ids = true;
      return true;
    case 18:
      s.max_tokens = static_cast<std::int32_t>(below(3)) - 1;
      if (s.max_tokens < 0) like_ends();
      return true;
    case 19:
      asked.truncate_prompt_tokens = 1 + static_cast<std::int32_t>(below(20));
      return true;
    case 20:
      s.seed = std::numeric_limits<std::uint64_t>::max() - below(3);
      return true;
    case 21:
      if (is_chat()) return false;
      asked.prompt = actors::text_prompt{
          letters(1 + below(static_cast<std::size_t>(most_prompt_) - 1)), below(2) == 0};
      return true;
    case 22:
      return allow_some();
    case 23:
    case 24:
      return take_grammar();
    case 31: // more biases than fit the sampler's arrays, so that rows are drawn in several passes
      for (std::size_t i = 0; i < 900; ++i)
        s.logit_bias.emplace_back(any_token(), 0.25f * static_cast<float>(below(9)) - 1);
      s.n = 4;
      s.logprobs = 2;
      return true;
    default:
      return false;
    }
  }

  /// Adds a wish that changes the output that the request draws so far.
  void change(std::uint32_t number, const ids& output) {
    auto& s = asked.sampling;
    if (output.empty()) return;
    // Logits may have more ids than the text: such an id may be drawn, but no client may name it.
    const auto some = [&] {
      const std::int32_t id = output[below(output.size())];
      return id < n_ids() ? id : any_token();
    };
    switch (number) {
    case 25:
    case 26:
      ban_words(output);
      return;
    case 27:
      for (std::size_t i = 0; i < 1 + below(4); ++i) {
        s.logit_bias.emplace_back(some(), -0.5f * static_cast<float>(1 + below(8)));
        s.logit_bias.emplace_back(any_token(), 1.5f * static_cast<float>(below(4)));
      }
      return;
    case 28:
      s.stop_token_ids = {some(), any_token()};
      return;
    case 29:
    case 30:
      stop_at(output);
      return;
    default:
      return;
    }
  }

  /// The request, within the limits that it must keep to.
  actors::request finished() const {
    auto done = asked;
    auto& s = done.sampling;
    s.max_tokens = std::min(s.max_tokens, context_ - most_prompt_);
    if (s.max_tokens >= 0) s.min_tokens = std::min(s.min_tokens, s.max_tokens);
    if (s.logit_bias.size() > most_biases) s.logit_bias.resize(most_biases);
    if (!s.seed && !config::is_greedy(s)) s.seed = seed_;
    return done;
  }

  actors::request asked;

private:
  std::uint32_t below(std::size_t n) { return random_() % static_cast<std::uint32_t>(n); }

  std::int32_t n_ids() const {
    return std::min(static_cast<std::int32_t>(model_.spec.vocab_size), model_.text->vocab_size());
  }
  std::int32_t any_token() { return any_token(random_); }
  std::int32_t any_token(std::mt19937& random) const {
    for (;;) {
      const auto id = static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(n_ids()));
      if (!model_.text->is_special(id)) return id;
    }
  }
  std::string letters(std::size_t n) {
    std::string text;
    while (text.size() < n)
      text += "etaoin shrdlu,."[below(15)];
    return text;
  }

  bool is_chat() const { return std::holds_alternative<actors::chat_prompt>(asked.prompt); }
  bool must_call() const {
    using kind = actors::tool_choice_kind;
    return asked.tools.kind == kind::required || asked.tools.kind == kind::named;
  }

  /// Makes marks of calls and reasoning, and parts of calls, likely enough to be drawn.
  void like_marks(std::mt19937& random) {
    for (std::int32_t id = 0; id < n_ids(); ++id) {
      const std::string bytes = model_.text->token_bytes(id, true);
      const bool marks = bytes.size() > 5 && (bytes.front() == '<' || bytes.front() == '[');
      if (marks || (random() % 2 == 0 && bytes.find_first_of("{<\"}`") == 0))
        asked.sampling.logit_bias.emplace_back(id, marks ? 4.0f : 2.0f);
    }
  }

  /// Makes the end ids likely enough to be drawn.
  void like_ends() {
    for (const std::int32_t id : model_.text->end_ids())
      asked.sampling.logit_bias.emplace_back(id, 3.0f + static_cast<float>(below(4)));
  }

  bool allow_some() {
    if (asked.grammar || must_call()) return false;
    for (std::size_t i = 0; i < 4 + below(60); ++i)
      asked.sampling.allowed_token_ids.push_back(any_token());
    const auto& ends = model_.text->end_ids();
    if (below(2) == 0)
      asked.sampling.allowed_token_ids.insert(asked.sampling.allowed_token_ids.end(), ends.begin(),
                                              ends.end());
    return true;
  }

  bool take_grammar() {
    if (!asked.sampling.allowed_token_ids.empty() || must_call()) return false;
    auto& grammar = asked.grammar.emplace();
    switch (below(5)) {
    case 0:
      grammar.kind = config::grammar_kind::regex;
      grammar.text = "[a-f]{2,9}(gh|i)+[j-z]{3,20}";
      break;
    case 1:
      grammar.kind = config::grammar_kind::choice;
      grammar.choices = {"yes", "no", "nothing", "yesterday"};
      break;
    case 2:
      grammar.kind = config::grammar_kind::json_schema;
      grammar.text = R"({"type": "object", "properties": {"a": {"enum": ["x", "yy", "\u00e4"]},
        "n": {"type": "integer", "minimum": 0, "maximum": 99},
        "b": {"type": "array", "items": {"type": "boolean"}, "maxItems": 2}},
        "required": ["a", "n", "b"], "additionalProperties": false})";
      break;
    case 3: // with so much white space that its limit is reached
      grammar.kind = config::grammar_kind::json_object;
      asked.sampling.max_tokens = longest_output;
      like_space();
      break;
    default:
      grammar.kind = config::grammar_kind::ebnf;
      grammar.text = "root ::= (\"<\" [a-z]+ \">\")+";
    }
    return true;
  }

  void like_space() {
    for (std::int32_t id = 0; id < n_ids(); ++id) {
      const auto bytes = model_.text->token_bytes(id, false);
      if (bytes.size() > 1 && bytes.find_first_not_of(" \n") == std::string::npos)
        asked.sampling.logit_bias.emplace_back(id, 20.0f);
    }
  }

  /// Bans words whose tokens are in the output, and words that begin in the prompt.
  void ban_words(const ids& output) {
    auto& words = asked.sampling.bad_words;
    const std::size_t wanted = words.size() + 1 + below(3);
    const auto is_read_back = [&](const std::string& text, const ids& from) {
      const auto read = model_.text->encode(text, {});
      return read.ok() && read.value() == from;
    };
    for (int tries = 0; tries < 40 && words.size() < wanted; ++tries) {
      ids some;
      if (below(3) == 0) {
        const auto n =
            static_cast<std::ptrdiff_t>(1 + below(std::min<std::size_t>(prompt_.size(), 2)));
        some.assign(prompt_.end() - n, prompt_.end());
        some.push_back(output.front());
      } else {
        const std::size_t n = std::min<std::size_t>(output.size(), 1 + below(3));
        const auto first =
            output.begin() + static_cast<std::ptrdiff_t>(below(output.size() - n + 1));
        some.assign(first, first + static_cast<std::ptrdiff_t>(n));
      }
      std::string text;
      for (const auto id : some)
        text += model_.text->token_bytes(id, false);
      if (is_read_back(text, some) && text.find_first_not_of(' ') == 0) words.push_back(text);
    }
  }

  /// Adds stop strings that are in the output, some of them just where min_tokens is reached.
  void stop_at(const ids& output) {
    auto& s = asked.sampling;
    for (std::size_t i = 0; i < 1 + below(3); ++i) {
      const std::size_t n = std::min<std::size_t>(output.size(), 1 + below(4));
      const std::size_t first = below(output.size() - n + 1);
      std::string text;
      for (std::size_t t = first; t < first + n; ++t)
        text += model_.text->token_bytes(output[t], false);
      const bool plain = std::all_of(text.begin(), text.end(),
                                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
      if (text.empty() || !plain) continue;
      s.stop.push_back(text);
      if (below(2) == 0) s.stop.push_back(text.substr(text.size() / 2) + "?");
      if (below(2) == 0) s.min_tokens = static_cast<std::int32_t>(first + n - below(2));
    }
    s.include_stop_str_in_output = below(3) == 0;
  }

  const models::model& model_;
  const chat_styles& chats_;
  std::mt19937 random_;
  std::uint64_t seed_ = 0;
  const std::int32_t context_, most_prompt_;
  ids prompt_;
};

} // namespace

actors::request request_of(const operation& numbers, const small_model& model,
                           const draw_output& draw) {
  wishes made(numbers, model);
  made.take_kind(numbers.c / 4096);
  const std::array picks = {numbers.b % 32, numbers.b / 32 % 32, numbers.b / 1024 % 32,
                            numbers.b / 32768 % 32};
  for (const std::uint32_t pick : picks)
    made.take(pick);
  for (const std::uint32_t pick : picks)
    if (pick >= 25) made.change(pick, draw(made.finished()));
  return made.finished();
}

} // namespace twill::test
