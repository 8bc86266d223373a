// grammar_service compiles grammars and caches them. The test compares which compiled grammars it
// shares, keeps and drops with a plain list in the order of last use.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/structured/grammar_service.hpp"
#include "tests/actors/scripted_runner.hpp"
#include "tests/catch.hpp"
#include "tests/support/operations.hpp"

using namespace twill;
using namespace twill::actors;
using namespace twill::test;
using config::grammar_spec;
using why = models::grammar::errc;

namespace {

struct form {
  config::grammar_kind kind;
  const char* text;
  bool compiles;
};
constexpr form forms[] = {{config::grammar_kind::regex, "a|b", true},
                          {config::grammar_kind::regex, "a|b|", true},
                          {config::grammar_kind::regex, "[ab]{1,9}c", true},
                          {config::grammar_kind::json_schema, R"({"type": "integer"})", true},
                          {config::grammar_kind::regex, "(", false},
                          {config::grammar_kind::json_schema, "{", false}};

std::shared_ptr<const models::model> byte_model() {
  auto model = std::make_shared<models::model>();
  model->text = std::make_shared<scripted::byte_tokenizer>();
  model->spec.vocab_size = 257;
  return model;
}

compile_grammar order_of(std::size_t which, bool with_markers) {
  compile_grammar order;
  order.spec.kind = forms[which].kind;
  order.spec.text = forms[which].text;
  if (with_markers) order.markers = {scripted::eos};
  return order;
}

std::size_t bytes_of(const grammar_answer& answer) {
  return 256 + (answer.grammar.ok() ? models::grammar::memory_bytes(*answer.grammar.value())
                                    : answer.grammar.detail().size());
}

std::size_t bytes_of_form(std::size_t which) {
  static const auto all = [] {
    grammar_service service(byte_model(), {});
    std::vector<std::size_t> bytes;
    for (std::size_t i = 0; i < std::size(forms); ++i)
      bytes.push_back(bytes_of(*service.compile(order_of(i, false))));
    return bytes;
  }();
  return all[which];
}

/// A cached answer, with the grammar and the kind of vocabulary that it belongs to.
struct kept_answer {
  std::size_t form;
  bool marked;
  grammar_answer_ptr answer;
  std::size_t bytes;
};

class service_play {
public:
  explicit service_play(const operation& setup) {
    // The cache has room for exactly the answers that setup.b selects, or for one byte more.
    limits_.cache_bytes = 1;
    for (std::size_t i = 0; i < std::size(forms); ++i)
      if ((setup.b >> i & 1) != 0) limits_.cache_bytes += bytes_of_form(i);
    if (setup.c % 2 == 0) limits_.cache_bytes -= 1;
    is_broken_ = setup.a % 16 == 15;
    if (is_broken_) limits_.helper = "/nowhere/twill-grammar";
    service_ = std::make_unique<grammar_service>(byte_model(), limits_);
  }

  void perform(const operation& op) {
    const std::size_t which = op.a % std::size(forms);
    const bool marked = op.b % 2 == 1;
    auto order = order_of(which, marked);
    const auto kind = op.kind % 16;
    if (kind < 6) return look(order, which, marked);
    if (kind == 15 && op.c % 3 == 2) {
      service_->stop();
      is_stopped_ = true;
      return;
    }
    // Whether a client waits for the grammar: unknown, yes, or not any more.
    if (op.c % 4 > 0) order.abandoned = std::make_shared<std::atomic<bool>>(op.c % 4 == 3);
    compile(order, which, marked);
  }

private:
  kept_answer* find(std::size_t which, bool marked) {
    const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const kept_answer& one) {
      return one.form == which && one.marked == marked;
    });
    return found == kept_.end() ? nullptr : &*found;
  }

  void demand_kept(const grammar_answer& answer, std::size_t which, bool marked) {
    kept_answer one = *find(which, marked);
    demand_equal(answer.grammar.ok(), one.answer->grammar.ok(), "whether it was compiled");
    if (answer.grammar.ok())
      demand(answer.grammar.value() == one.answer->grammar.value(), "the grammar is shared");
    else
      demand(answer.grammar.code() == one.answer->grammar.code() &&
                 answer.grammar.detail() == one.answer->grammar.detail(),
             "the refusal is kept");
    demand(answer.tokens == one.answer->tokens, "the tokens that it was compiled for");
    kept_.erase(kept_.begin() + (find(which, marked) - kept_.data()));
    kept_.push_back(std::move(one)); // the answer was used last
  }

  void look(const compile_grammar& order, std::size_t which, bool marked) {
    const auto answer = service_->cached(order);
    demand_equal(answer != nullptr, find(which, marked) != nullptr, "whether it is kept");
    if (answer != nullptr) demand_kept(*answer, which, marked);
  }

  void compile(const compile_grammar& order, std::size_t which, bool marked) {
    const auto answer = service_->compile(order);
    demand(answer->tokens != nullptr, "an answer has the tokens that it is for");
    demand((answer->tokens->bytes[scripted::eos] == "<eos>") == marked, "markers have their text");
    auto& tokens = marked ? marked_tokens_ : plain_tokens_;
    if (tokens == nullptr) tokens = answer->tokens;
    demand(answer->tokens == tokens, "there is one vocabulary of a kind");
    if (find(which, marked) != nullptr) return demand_kept(*answer, which, marked);
    const auto& grammar = answer->grammar;
    if (is_stopped_ || (order.abandoned && *order.abandoned))
      demand(!grammar.ok(), "what nobody waits for is not compiled");
    if (is_broken_) {
      demand(!grammar.ok() && !is_lasting(*answer), "a helper that is not there");
      return;
    }
    if (!is_lasting(*answer)) {
      demand(is_stopped_ || (order.abandoned && *order.abandoned), "a grammar is not compiled");
      return;
    }
    demand_equal(grammar.ok(), forms[which].compiles, "whether it is compiled");
    kept_.push_back({which, marked, answer, bytes_of(*answer)});
    drop_oldest(marked);
  }

  static bool is_lasting(const grammar_answer& answer) {
    constexpr why passing[] = {why::timed_out, why::out_of_memory, why::abandoned,
                               why::overdue,   why::helper_failed, why::no_resources};
    return answer.grammar.ok() || std::find(std::begin(passing), std::end(passing),
                                            answer.grammar.code()) == std::end(passing);
  }

  /// Each kind of vocabulary has its own cache, which always keeps the last answer.
  void drop_oldest(bool marked) {
    const auto is_there = [&](const kept_answer& one) { return one.marked == marked; };
    for (;;) {
      std::size_t bytes = 0;
      for (const auto& one : kept_)
        bytes += is_there(one) ? one.bytes : 0;
      const bool is_last = std::count_if(kept_.begin(), kept_.end(), is_there) == 1;
      if (bytes <= limits_.cache_bytes || is_last) return;
      kept_.erase(std::find_if(kept_.begin(), kept_.end(), is_there));
    }
  }

  models::grammar::compile_limits limits_;
  bool is_broken_ = false, is_stopped_ = false;
  std::unique_ptr<grammar_service> service_;
  std::vector<kept_answer> kept_; ///< in the order of their last use
  models::grammar::vocabulary_ptr plain_tokens_, marked_tokens_;
};

void play_service(const operations& sequence) {
  if (sequence.empty()) return;
  service_play play(sequence.front());
  for (std::size_t i = 1; i < sequence.size(); ++i)
    play.perform(sequence[i]);
}

} // namespace

TEST_CASE("grammars are shared, kept and dropped as by a plain list") {
  CHECK(first_failure({.cases = 200, .long_cases = 5'000, .most_operations = 60}, play_service) ==
        "");
}
