// The executor's state of its sequences: plans become batches, and samples become results.
#include "actors/executor/sequence_states.hpp"

#include <cmath>
#include <memory>
#include <vector>

#include "tests/catch.hpp"
#include "tests/models/text/grammar/byte_vocabulary.hpp"

using namespace twill::actors;
using ids = std::vector<std::int32_t>;

namespace {

constexpr std::int32_t end_id = 99;

twill::config::sampling_params greedy() {
  twill::config::sampling_params params;
  params.temperature = 0;
  return params;
}

open_sequence opened(sequence_id id, ids prompt, std::int32_t max_new,
                     const twill::config::sampling_params& params = greedy()) {
  open_sequence o;
  o.id = id;
  o.spec.prompt = std::make_shared<const ids>(std::move(prompt));
  o.spec.sampling = std::make_shared<const twill::config::sampling_params>(params);
  o.spec.stop_ids = std::make_shared<const ids>(ids{end_id});
  o.spec.seed = 40 + id;
  o.spec.max_new = max_new;
  return o;
}

step_samples drawing(ids tokens) {
  step_samples samples;
  samples.tokens = std::move(tokens);
  return samples;
}

/// One sequence with a prompt of three tokens, whose prefill drew 7.
struct started {
  explicit started(const twill::config::sampling_params& params = greedy(),
                   std::int32_t max_new = 5) {
    step_plan plan;
    plan.opens = {opened(1, {10, 11, 12}, max_new, params)};
    plan.grows = {{1, 1}};
    plan.blocks = {4};
    plan.rows = {{1, 0, 3, true}};
    states.prepare(plan, batch);
    step_samples samples = drawing({7});
    samples.logprobs = {-0.25f};
    states.finish(plan, samples, result);
  }
  /// A plan with one decode at `position`.
  void decode(std::int32_t position) {
    plan = {};
    plan.rows = {{1, position, 1, true}};
    states.prepare(plan, batch);
  }

  sequence_states states;
  step_plan plan;
  executor_step batch;
  step_result result;
};

/// Rules over the byte vocabulary, whose end is end_of_answer.
std::shared_ptr<const output_rules> rules_of(const std::string& root) {
  auto rules = std::make_shared<output_rules>();
  rules->tokens = twill::test::byte_vocabulary();
  rules->grammar = twill::models::grammar::compile_here("root ::= " + root, rules->tokens).value();
  return rules;
}

} // namespace

TEST_CASE("a plan's rows become the arrays of one ragged batch") {
  sequence_states states;
  step_plan plan;
  plan.opens = {opened(1, {10, 11, 12}, 5), opened(2, {20, 21, 22, 23, 24, 25}, 5)};
  plan.grows = {{1, 1}, {2, 2}};
  plan.blocks = {4, 8, 9};
  plan.rows = {{1, 0, 3, true}, {2, 0, 4, false}};
  executor_step batch;
  states.prepare(plan, batch);
  CHECK(batch.tokens == ids{10, 11, 12, 20, 21, 22, 23});
  CHECK(batch.positions == ids{0, 1, 2, 0, 1, 2, 3});
  CHECK(batch.first_token == ids{0, 3, 7});
  CHECK(batch.kv_lengths == ids{3, 4});
  CHECK(batch.prompt_lengths == ids{3, 6});
  CHECK(batch.max_blocks == 2);
  CHECK(batch.block_table == ids{4, 0, 8, 9});
  CHECK(batch.logit_rows == ids{2});
  REQUIRE(batch.draws.size() == 1);
  CHECK(batch.draws[0].seed == 41);
  CHECK(batch.draws[0].counter == 3);
}

TEST_CASE("a decode takes the token that was drawn last, and blocks are added to its table") {
  started s;
  REQUIRE(s.result.drawn.size() == 1);
  CHECK(s.result.drawn[0].token == 7);
  CHECK_FALSE(s.result.drawn[0].stopped);
  s.plan = {};
  s.plan.grows = {{1, 1}};
  s.plan.blocks = {6};
  s.plan.rows = {{1, 3, 1, true}};
  s.states.prepare(s.plan, s.batch);
  CHECK(s.batch.tokens == ids{7});
  CHECK(s.batch.positions == ids{3});
  CHECK(s.batch.block_table == ids{4, 6});
  CHECK(s.batch.draws[0].counter == 4);
}

TEST_CASE("a sequence that drew an end id is left out of the step prepared meanwhile") {
  started s;
  s.decode(3);
  s.result = {};
  s.states.finish(s.plan, drawing({end_id}), s.result);
  CHECK(s.result.drawn[0].stopped);
  s.decode(4);
  CHECK(s.batch.tokens.empty());
  CHECK(s.batch.draws.empty());
  s.result = {};
  s.states.finish(s.plan, drawing({}), s.result);
  CHECK(s.result.drawn.empty());
}

TEST_CASE("a sequence with its last token drawn is left out") {
  started s(greedy(), 2);
  s.decode(3);
  s.result = {};
  s.states.finish(s.plan, drawing({8}), s.result);
  CHECK_FALSE(s.result.drawn[0].stopped);
  s.decode(4);
  CHECK(s.batch.tokens.empty());
}

TEST_CASE("a sequence that leaves is skipped, also before it is opened, until a plan closes it") {
  sequence_states states;
  step_plan plan;
  plan.opens = {opened(1, {10, 11, 12}, 5), opened(2, {20, 21}, 5), opened(3, {30, 31, 32}, 5)};
  plan.grows = {{1, 1}, {2, 1}, {3, 1}};
  plan.blocks = {4, 5, 6};
  plan.rows = {{1, 0, 3, true}, {2, 0, 2, true}, {3, 0, 2, false}};
  executor_step batch;
  step_result result;
  states.skip(std::vector<sequence_id>{1, 3});
  states.prepare(plan, batch);
  CHECK(batch.tokens == ids{20, 21});
  CHECK(batch.logit_rows == ids{1});
  states.finish(plan, drawing({7}), result);
  CHECK(result.skipped == std::vector<sequence_id>{1, 3});
  REQUIRE(result.drawn.size() == 1);
  CHECK(result.drawn[0].id == 2);

  states.skip(std::vector<sequence_id>{2});
  plan = {};
  plan.rows = {{2, 2, 1, true}};
  states.prepare(plan, batch);
  CHECK(batch.tokens.empty());
  result = {};
  states.finish(plan, {}, result);
  CHECK(result.skipped == std::vector<sequence_id>{2});

  // A plan that was made earlier may preempt sequence 2 and open it again.
  plan = {};
  plan.closes = {1, 2, 3};
  plan.opens = {opened(2, {20, 21}, 5)};
  plan.grows = {{2, 1}};
  plan.blocks = {5};
  plan.rows = {{2, 0, 2, true}};
  for (const bool again : {true, false}) {
    states.prepare(plan, batch);
    CHECK(batch.tokens.empty());
    result = {};
    states.finish(plan, {}, result);
    CHECK(result.skipped == std::vector<sequence_id>{2});
    if (again) continue;
    step_plan closes;
    closes.closes = {2};
    states.prepare(closes, batch);
    states.finish(closes, {}, result);
  }
  states.prepare(plan, batch);
  CHECK(batch.tokens == ids{20, 21});
  result = {};
  states.finish(plan, drawing({7}), result);
  CHECK(result.skipped.empty());
}

TEST_CASE("a step that is prepared while another computes takes its tokens from that one's draws") {
  sequence_states states;
  step_plan first, second, third;
  first.opens = {opened(1, {10, 11, 12}, 5), opened(2, {20, 21}, 5)};
  first.grows = {{1, 2}, {2, 2}};
  first.blocks = {4, 5, 6, 7};
  first.rows = {{1, 0, 3, true}, {2, 0, 2, true}};
  executor_step batch;
  CHECK(states.may_follow(first));
  states.prepare(first, batch);
  CHECK(batch.fed_from.empty());
  second.opens = {opened(3, {30, 31}, 5)};
  second.grows = {{3, 1}};
  second.blocks = {8};
  second.rows = {{2, 2, 1, true}, {1, 3, 1, true}, {3, 0, 2, true}};
  CHECK(states.may_follow(second));
  states.prepare(second, batch);
  CHECK(batch.tokens == ids{0, 0, 30, 31});
  CHECK(batch.fed_from == ids{1, 0, -1, -1});
  CHECK(batch.positions == ids{2, 3, 0, 1});
  CHECK(batch.draws[0].counter == 3);
  CHECK(batch.draws[1].counter == 4);
  step_result result;
  states.finish(first, drawing({7, end_id}), result);
  REQUIRE(result.drawn.size() == 2);
  CHECK(result.drawn[1].stopped);
  third.rows = {{1, 4, 1, true}, {3, 2, 1, true}};
  states.prepare(third, batch);
  CHECK(batch.fed_from == ids{1, 2});
  result = {};
  states.finish(second, drawing({50, 8, 33}), result); // 50 was drawn after an end id: dropped
  REQUIRE(result.drawn.size() == 2);
  CHECK(result.drawn[0].id == 1);
  CHECK(result.drawn[0].token == 8);
  CHECK(result.drawn[1].id == 3);
  result = {};
  states.finish(third, drawing({9, 34}), result);
  step_plan fourth;
  fourth.rows = {{1, 5, 1, true}, {2, 3, 1, true}, {3, 3, 1, true}};
  states.prepare(fourth, batch);
  CHECK(batch.tokens == ids{9, 34}); // sequence 2 has ended
  CHECK(batch.fed_from.empty());
}

TEST_CASE("a sequence whose last token is being drawn is left out") {
  sequence_states states;
  step_plan first, second;
  first.opens = {opened(1, {10, 11, 12}, 1)};
  first.rows = {{1, 0, 3, true}};
  executor_step batch;
  states.prepare(first, batch);
  second.rows = {{1, 3, 1, true}};
  states.prepare(second, batch);
  CHECK(batch.tokens.empty());
  step_result result;
  states.finish(first, drawing({7}), result);
  CHECK(result.drawn.size() == 1);
  states.finish(second, drawing({}), result);
  CHECK(result.drawn.size() == 1);
}

TEST_CASE("min_tokens counts the token that is being drawn") {
  auto params = greedy();
  params.min_tokens = 2;
  sequence_states states;
  step_plan first, second, third;
  first.opens = {opened(1, {10, 11, 12}, 5, params)};
  first.rows = {{1, 0, 3, true}};
  executor_step batch;
  states.prepare(first, batch);
  CHECK(batch.draws[0].biases.size() == 1);
  second.rows = {{1, 3, 1, true}};
  states.prepare(second, batch);
  CHECK(batch.draws[0].biases.size() == 1);
  step_result result;
  states.finish(first, drawing({7}), result);
  third.rows = {{1, 4, 1, true}};
  states.prepare(third, batch);
  CHECK(batch.draws[0].biases.empty());
}

TEST_CASE("a step waits for the one before it where a row's draw depends on the token itself") {
  const auto follows = [](const sequence_spec& more) {
    sequence_states states;
    step_plan first, second;
    first.opens = {opened(1, {10, 11}, 5)};
    first.opens[0].spec.bad_words = more.bad_words;
    first.opens[0].spec.rules = more.rules;
    first.opens[0].spec.prompt_logprobs = more.prompt_logprobs;
    first.opens[0].spec.allowed = more.allowed;
    if (more.sampling) first.opens[0].spec.sampling = more.sampling;
    first.rows = {{1, 0, 2, true}};
    executor_step batch;
    states.prepare(first, batch);
    if (batch.await_masks) batch.await_masks();
    second.rows = {{1, 2, 1, true}};
    return states.may_follow(second);
  };
  sequence_spec plain, words, rules, penalty, scores, allowed;
  words.bad_words = std::make_shared<const std::vector<ids>>(std::vector<ids>{{7, 8}});
  rules.rules = rules_of("[a-z]+");
  auto params = greedy();
  params.frequency_penalty = 0.5f;
  penalty.sampling = std::make_shared<const twill::config::sampling_params>(params);
  scores.prompt_logprobs = 0;
  allowed.allowed =
      std::make_shared<const std::vector<std::uint32_t>>(std::vector<std::uint32_t>{0b101});
  CHECK(follows(plain));
  CHECK(follows(allowed));
  CHECK_FALSE(follows(words));
  CHECK_FALSE(follows(rules));
  CHECK_FALSE(follows(penalty));
  CHECK_FALSE(follows(scores));
}

TEST_CASE("a sequence that is opened again goes on from its known tokens") {
  started s;
  s.plan = {};
  s.plan.closes = {1};
  s.plan.opens = {opened(1, {10, 11, 12}, 5)};
  s.plan.opens[0].output = {7, 8};
  s.plan.opens[0].blocks = {2};
  s.plan.grows = {{1, 1}};
  s.plan.blocks = {3};
  s.plan.rows = {{1, 0, 5, true}};
  s.states.prepare(s.plan, s.batch);
  CHECK(s.batch.tokens == ids{10, 11, 12, 7, 8});
  CHECK(s.batch.block_table == ids{2, 3});
  CHECK(s.batch.prompt_lengths == ids{3});
  CHECK(s.batch.draws[0].counter == 5);
}

TEST_CASE("before min_tokens the stop ids are banned, and the request's biases stay") {
  auto params = greedy();
  params.min_tokens = 2;
  params.logit_bias = {{5, 1.5f}, {5, 1.0f}};
  started s(params);
  s.decode(3); // one token was drawn before; the second is still below min_tokens
  REQUIRE(s.batch.draws[0].biases.size() == 2);
  CHECK(s.batch.draws[0].biases[0].id == 5);
  CHECK(s.batch.draws[0].biases[0].bias == 2.5f);
  CHECK(s.batch.draws[0].biases[1].id == end_id);
  CHECK(std::isinf(s.batch.draws[0].biases[1].bias));
  s.states.finish(s.plan, drawing({8}), s.result);
  s.decode(4);
  REQUIRE(s.batch.draws[0].biases.size() == 1);
  CHECK(s.batch.draws[0].biases[0].id == 5);
}

TEST_CASE("before min_tokens a grammar's end is banned, also where the model's end is ignored") {
  auto params = greedy();
  params.min_tokens = 2;
  params.ignore_eos = true;
  twill::config::grammar_spec spec;
  spec.kind = twill::config::grammar_kind::regex;
  spec.text = "a*";
  auto rules = std::make_shared<output_rules>();
  rules->tokens = twill::test::byte_vocabulary();
  rules->grammar = twill::test::compiled(spec).value();
  sequence_states states;
  executor_step batch;
  step_plan plan;
  plan.opens = {opened(1, {10, 11, 12}, 5, params)};
  plan.opens[0].spec.stop_ids = std::make_shared<const ids>();
  plan.opens[0].spec.rules = rules;
  plan.grows = {{1, 1}};
  plan.blocks = {4};
  plan.rows = {{1, 0, 3, true}};
  for (std::int32_t position = 3; position < 6; ++position) {
    states.prepare(plan, batch);
    batch.await_masks();
    REQUIRE(batch.draws[0].biases.size() == (position < 5 ? 1u : 0u));
    if (position < 5) CHECK(batch.draws[0].biases[0].id == twill::test::end_of_answer);
    step_result result;
    states.finish(plan, drawing({'a'}), result);
    plan = {};
    plan.rows = {{1, position, 1, true}};
  }
}

TEST_CASE("with a penalty the tokens of prompt and output are counted apart") {
  auto params = greedy();
  params.presence_penalty = 0.5f;
  started s(params);
  s.decode(3);
  s.states.finish(s.plan, drawing({10}), s.result);
  s.decode(4);
  const auto counts = s.batch.draws[0].counts;
  REQUIRE(counts.size() == 4);
  CHECK(counts[0].id == 7);
  CHECK(counts[0].in_output == 1);
  CHECK(counts[0].in_prompt == 0);
  CHECK(counts[1].id == 10);
  CHECK(counts[1].in_output == 1);
  CHECK(counts[1].in_prompt == 1);
}

TEST_CASE("without a penalty nothing is counted") {
  started s;
  s.decode(3);
  CHECK(s.batch.draws[0].counts.empty());
}

TEST_CASE("log-probabilities are reported as many as the request asked for") {
  auto params = greedy();
  params.logprobs = 2;
  started s(params);
  CHECK(s.result.drawn[0].logprob == -0.25f);
  s.decode(3);
  s.result = {};
  step_samples samples = drawing({8});
  samples.logprobs = {-0.5f};
  samples.max_top = 3;
  samples.top_ids = {8, 9, 10};
  samples.top_logprobs = {-0.5f, -1.0f, -2.0f};
  s.states.finish(s.plan, samples, s.result);
  CHECK(s.result.drawn[0].n_top == 2);
  REQUIRE(s.result.top.size() == 2);
  CHECK(s.result.top[1] == std::pair<std::int32_t, float>{9, -1.0f});
}

namespace {

/// A sequence with a prompt of two tokens whose output so far is `output`, asked to draw.
struct ruled {
  ruled(sequence_spec more, const ids& output) {
    open_sequence o = opened(1, {10, 11}, 100);
    o.spec.rules = more.rules;
    o.spec.bad_words = more.bad_words;
    o.spec.allowed = more.allowed;
    if (more.sampling) o.spec.sampling = more.sampling;
    o.output = output;
    plan.opens = {o};
    plan.grows = {{1, 100}};
    plan.blocks.assign(100, 1);
    plan.rows = {{1, 0, static_cast<std::int32_t>(2 + output.size()), true}};
    prepare();
  }
  void prepare() {
    states.prepare(plan, batch);
    if (batch.await_masks) batch.await_masks();
  }
  /// Draws `token` and prepares the next draw.
  drawn_token draw(std::int32_t token) {
    step_result result;
    states.finish(plan, drawing({token}), result);
    const auto& rows = plan.rows.at(0);
    const std::int32_t next = rows.first_position + rows.n_tokens;
    plan = {};
    plan.rows = {{1, next, 1, true}};
    prepare();
    return result.drawn.at(0);
  }
  /// The ids that the mask allows.
  ids allowed() const {
    ids all;
    const auto mask = batch.draws.at(0).mask;
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(mask.size()) * 32; ++id)
      if ((mask[static_cast<std::size_t>(id / 32)] >> (id % 32) & 1) != 0) all.push_back(id);
    return all;
  }
  ids banned() const {
    ids all;
    for (const auto& b : batch.draws.at(0).biases)
      if (std::isinf(b.bias)) all.push_back(b.id);
    return all;
  }

  sequence_states states;
  step_plan plan;
  executor_step batch;
};

} // namespace

TEST_CASE("a grammar masks each draw, and its end ends the sequence") {
  sequence_spec spec;
  spec.rules = rules_of(R"("a" [be])");
  ruled r(spec, {});
  CHECK(r.allowed() == ids{'a'});
  CHECK_FALSE(r.draw('a').stopped);
  CHECK(r.allowed() == ids{'b', 'e'});
  CHECK_FALSE(r.draw('e').stopped);
  CHECK(r.allowed() == ids{twill::test::end_of_answer});
  const drawn_token last = r.draw(twill::test::end_of_answer);
  CHECK(last.stopped); // also for a request that ignores end ids
  CHECK_FALSE(last.no_allowed_token);
  CHECK(r.batch.draws.empty());
}

TEST_CASE("a sequence that is computed again stands where it stood in its grammar") {
  sequence_spec spec;
  spec.rules = rules_of(R"("a" [bc] "d")");
  ruled r(spec, {'a', 'b'});
  CHECK(r.allowed() == ids{'d'});
  CHECK(r.draw('x').no_allowed_token);
}

TEST_CASE("choices of a request stand in the grammar each by itself") {
  const auto rules = rules_of(R"([ab] "c")");
  sequence_states states;
  step_plan plan;
  plan.opens = {opened(1, {10}, 5), opened(2, {10}, 5)};
  plan.opens[0].spec.rules = plan.opens[1].spec.rules = rules;
  plan.grows = {{1, 1}, {2, 1}};
  plan.blocks = {4, 5};
  plan.rows = {{1, 0, 1, true}, {2, 0, 1, false}};
  executor_step batch;
  states.prepare(plan, batch);
  batch.await_masks(); // as a runner does before it draws
  step_result result;
  states.finish(plan, drawing({'a'}), result);
  plan = {};
  plan.rows = {{1, 1, 1, true}, {2, 0, 1, true}};
  states.prepare(plan, batch);
  batch.await_masks();
  CHECK((batch.draws.at(0).mask['c' / 32] >> ('c' % 32) & 1) == 1);
  CHECK((batch.draws.at(1).mask['c' / 32] >> ('c' % 32) & 1) == 0);
}

TEST_CASE("a step that fails before it needs its masks does no harm") {
  sequence_spec spec;
  spec.rules = rules_of("[a-z]+");
  for (int i = 0; i < 50; ++i) {
    ruled r(spec, {});
    r.states.prepare(r.plan, r.batch); // the masks are still being computed
    r.states.clear();
  }
}

TEST_CASE("a bad word's last token is banned when its other tokens were drawn last") {
  sequence_spec spec;
  spec.bad_words =
      std::make_shared<const std::vector<ids>>(std::vector<ids>{{5}, {7, 8}, {11, 9}, {7, 7, 6}});
  ruled r(spec, {});
  CHECK(r.banned() == ids{5}); // the 11 of {11, 9} is in the prompt, so 9 may be drawn
  r.draw(7);
  CHECK(r.banned() == ids{5, 8});
  r.draw(7);
  CHECK(r.banned() == ids{5, 8, 6});
  r.draw(1);
  CHECK(r.banned() == ids{5});
}

TEST_CASE("allowed ids are a mask of their own") {
  sequence_spec spec;
  spec.allowed =
      std::make_shared<const std::vector<std::uint32_t>>(std::vector<std::uint32_t>{0b101, 0x10});
  ruled r(spec, {});
  CHECK(r.allowed() == ids{0, 2, 36});
  CHECK_FALSE(r.batch.await_masks);
}

TEST_CASE("scored rows come after those that are drawn from, one for each prompt token") {
  sequence_states states;
  step_plan plan;
  plan.opens = {opened(1, {10, 11, 12, 13}, 5), opened(2, {20, 21, 22}, 5)};
  plan.opens[0].spec.prompt_logprobs = 2;
  plan.grows = {{1, 1}, {2, 1}};
  plan.blocks = {4, 5};
  plan.rows = {{1, 0, 3, false}, {2, 0, 3, true}};
  executor_step batch;
  states.prepare(plan, batch);
  CHECK(batch.logit_rows == ids{5, 0, 1, 2});
  REQUIRE(batch.scores.size() == 3);
  CHECK(batch.scores[0].token == 11);
  CHECK(batch.scores[2].token == 13);
  CHECK(batch.scores[2].n_top == 2);
  step_samples samples = drawing({7});
  samples.score_logprobs = {-1, -2, -3};
  samples.score_max_top = 2;
  samples.score_top_ids = {1, 2, 3, 4, 5, 6};
  samples.score_top_logprobs = {-1, -2, -3, -4, -5, -6};
  step_result result;
  states.finish(plan, samples, result);
  REQUIRE(result.scored.size() == 3);
  CHECK(result.scored[1].position == 2);
  CHECK(result.scored[1].logprob == -2);
  CHECK(result.top.at(static_cast<std::size_t>(result.scored[1].first_top) + 1).first == 4);
  plan = {};
  plan.rows = {{1, 3, 1, true}, {2, 3, 1, true}};
  states.prepare(plan, batch);
  CHECK(batch.scores.empty());
  CHECK(batch.logit_rows == ids{0, 1});
}

TEST_CASE("the grammar begins after the reasoning, which an end may not cut short") {
  auto rules = std::make_shared<output_rules>(*rules_of(R"("{}")"));
  rules->begins_in_reasoning = true;
  rules->reasoning_end = "</t>";
  sequence_spec spec;
  spec.rules = rules;
  ruled r(spec, {});
  CHECK(r.allowed().size() == 287); // all of nine mask words but the end id
  for (const char c : std::string("hm <</t"))
    CHECK_FALSE(r.draw(c).no_allowed_token);
  CHECK(r.allowed().size() == 287);
  r.draw('>');
  CHECK(r.allowed() == ids{'{'});
  CHECK(r.draw('x').no_allowed_token);
}

TEST_CASE("an output may begin to reason with the opening tag's token, or answer at once") {
  auto rules = std::make_shared<output_rules>(*rules_of(R"("{}")"));
  rules->reasoning_begin_token = 3;
  rules->reasoning_end = "</t>";
  sequence_spec spec;
  spec.rules = rules;
  ruled thinks(spec, {});
  CHECK(thinks.allowed() == ids{3, '{'});
  thinks.draw(3);
  CHECK(thinks.allowed().size() == 287);
  ruled answers(spec, {});
  answers.draw('{');
  CHECK(answers.allowed() == ids{'}'});
}

TEST_CASE("pooled rows come last, draw nothing, and are added up over the chunks of their prompt") {
  sequence_states states;
  step_plan plan;
  plan.opens = {opened(1, {10, 11, 12}, 1), opened(2, {20, 21, 22}, 5), opened(3, {30, 31}, 1)};
  plan.opens[0].spec.pooling = pooling::mean;
  plan.opens[2].spec.pooling = pooling::last;
  plan.grows = {{1, 1}, {2, 1}, {3, 1}};
  plan.blocks = {4, 5, 6};
  plan.rows = {{1, 0, 2, false}, {2, 0, 3, true}, {3, 0, 2, true}};
  CHECK_FALSE(states.may_follow(plan));
  executor_step batch;
  states.prepare(plan, batch);
  CHECK(batch.logit_rows == ids{4, 0, 1, 6});
  CHECK(batch.n_hidden == 3);
  CHECK(batch.draws.size() == 1);
  step_samples samples = drawing({7});
  samples.hidden_size = 2;
  samples.hidden = {1, 2, 4, 5, 100, 200};
  step_result result;
  states.finish(plan, samples, result);
  REQUIRE(result.drawn.size() == 2);
  CHECK(result.drawn[0].id == 2);
  CHECK(result.drawn[0].token == 7);
  CHECK(result.drawn[1].id == 3);
  REQUIRE(result.pooled.size() == 1);
  CHECK(*result.pooled.at(static_cast<std::size_t>(result.drawn[1].first_top)) ==
        std::vector<float>{100, 200});

  plan = {};
  plan.closes = {3};
  plan.rows = {{1, 2, 1, true}, {2, 3, 1, true}};
  CHECK_FALSE(states.may_follow(plan));
  states.prepare(plan, batch);
  CHECK(batch.logit_rows == ids{1, 0});
  CHECK(batch.n_hidden == 1);
  samples = drawing({8});
  samples.hidden_size = 2;
  samples.hidden = {1, 5};
  result = {};
  states.finish(plan, samples, result);
  REQUIRE(result.pooled.size() == 1);
  CHECK(*result.pooled.front() == std::vector<float>{2, 4});
  plan = {};
  plan.closes = {1};
  plan.rows = {{2, 4, 1, true}};
  CHECK(states.may_follow(plan));
  states.prepare(plan, batch);
  CHECK(batch.n_hidden == 0);
}
