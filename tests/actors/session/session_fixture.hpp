// A fixture for tests of session_core, the logic of one request without actors
// (actors/session/session_core.hpp). The test takes the place of the batcher. The tokenizer of the
// test's model has one token for each byte.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/session/session_core.hpp"
#include "actors/structured/grammar_service.hpp"
#include "models/text/tool_calls/tool_format.hpp"
#include "tests/actors/engine_fixture.hpp"

namespace session_tests {

using namespace twill::actors;

inline const auto now = steady_clock::time_point{} + std::chrono::seconds(5);

struct fixture : session_core::session_host {
  explicit fixture(request asked, event_callback callback = nullptr, token_budget* tokens = nullptr,
                   const twill::config::limit_options& limits = {})
      : control(std::make_shared<request_control>()), budget(tokens),
        core(args_of(std::move(asked), std::move(callback), limits), stats, *this) {}

  session_args args_of(request asked, event_callback callback,
                       const twill::config::limit_options& limits) {
    session_args args;
    args.limits = limits;
    args.id = 3;
    args.request = std::move(asked);
    args.on_event = callback ? std::move(callback) : [this](event e) { events.push_back(e); };
    args.control = control;
    args.submitted = session_tests::now - std::chrono::seconds(1);
    // The fixture owns the tenant and the budget, and outlives its session_core, so the pointers do
    // not own them.
    args.tenant = {std::shared_ptr<void>(), &tenant};
    args.budget = {std::shared_ptr<void>(), budget};
    args.cache_scope = 5;
    return args;
  }
  void start(std::int32_t context = 100, std::int64_t kv_tokens = 100) {
    start_with(std::make_shared<twill::models::model>(), context, kv_tokens);
  }
  /// Serves `files`, whose tokens are bytes.
  void start_with(std::shared_ptr<twill::models::model> files, std::int32_t context,
                  std::int64_t kv_tokens) {
    files->text = std::make_shared<scripted::byte_tokenizer>();
    files->spec.vocab_size = files->text->vocab_size();
    auto served = std::make_shared<served_model>();
    served->files = files;
    served->id = "bytes";
    served->max_context_tokens = context;
    served->kv_tokens = kv_tokens;
    served->max_prompt_bytes = 1000;
    served->answers = answers;
    served->grammars =
        std::make_shared<grammar_service>(files, twill::models::grammar::compile_limits{});
    core.start(served, std::nullopt);
    if (!submitted.empty()) core.queued();
  }
  /// Passes tokens of a choice to the core one by one, as the batcher does.
  void tokens(const std::string& text, std::int32_t choice = 0) {
    for (unsigned char c : text)
      core.token(token_of(c, choice), session_tests::now);
  }
  static token_ready token_of(std::int32_t id, std::int32_t choice = 0) {
    token_ready ready;
    ready.token = id;
    ready.choice = choice;
    return ready;
  }
  std::string text() const {
    std::string all;
    for (const event& e : events)
      all += e.text;
    return all;
  }

  void encode(served_model_ptr model, prompt_variant prompt, bool to_context) override {
    encoded_prompt answer{std::move(prompt), "", std::vector<std::int32_t>()};
    encode_prompt_within(*model, to_context, nullptr, answer);
    core.encoded(std::move(answer));
  }
  void submit(const submit_prompt& prompt) override { submitted.push_back(prompt); }
  void compile(const compile_grammar& order) override { ordered.push_back(order); }
  void finish_choice(std::int32_t choice) override { finished.push_back(choice); }
  void release() override { ++n_released; }
  void waited_too_long() override { ++n_waited; }
  std::int32_t retry_after_s() override { return 7; }
  steady_clock::time_point now() const override { return session_tests::now; }
  void on_over() override { ++n_over; }

  answer_format answers; ///< the answer format of the served model
  stats_board stats;
  std::shared_ptr<request_control> control;
  std::vector<event> events;
  std::vector<submit_prompt> submitted;
  std::vector<compile_grammar> ordered;
  std::vector<std::int32_t> finished;
  int n_released = 0, n_over = 0, n_waited = 0;
  token_budget* budget; ///< the budget of the request's tenant
  twill::config::tenant_options tenant{"t", {}, 3, 2, 5};
  session_core core;
};

inline request asking(const std::string& prompt, std::int32_t max_tokens = 10) {
  request r;
  r.prompt = text_prompt{prompt};
  r.sampling.max_tokens = max_tokens;
  r.sampling.seed = 77;
  return r;
}

/// All parts of the events as one text: "T:" before text, "R:" before reasoning, "<" before the
/// name of a tool call, "A:" before its arguments, ">" at its end.
inline std::string parts_of(const std::vector<event>& events) {
  const char* names[] = {"T:", "R:", "<", "A:", ">"};
  std::string all;
  std::optional<output_part_kind> last;
  for (const event& e : events)
    for (const output_part& p : e.parts) {
      if (p.kind != last) all += names[static_cast<int>(p.kind)];
      last = p.kind;
      all += p.text;
      if (p.kind == output_part_kind::call_end && !p.complete) all += "!";
    }
  return all;
}

/// The batcher reports an end id.
inline void end(fixture& r) {
  token_ready ready = fixture::token_of(scripted::eos);
  ready.stopped = true;
  r.core.token(ready, now);
}

inline request calling(tool_choice choice = {}) {
  request r = asking("");
  chat_prompt chat;
  chat.tools = twill::value_list{twill::value_object{
      {"type", "function"},
      {"function", twill::value_object{{"name", "look"},
                                       {"parameters", twill::value_object{{"type", "object"}}}}}}};
  r.prompt = chat;
  r.tools = choice;
  r.parse_output = true;
  return r;
}

/// A fixture whose model has a chat template that prints "hi" and writes tool calls in the hermes
/// format.
struct chat_fixture : fixture {
  explicit chat_fixture(request asked, const twill::config::limit_options& limits = {})
      : fixture(std::move(asked), nullptr, nullptr, limits) {
    answers.calls = twill::models::tool_calls::format_named("hermes");
    answers.reasoning = twill::models::tool_calls::reasoning_tags{};
  }
  void start_chat() {
    auto files = std::make_shared<twill::models::model>();
    files->chat =
        twill::models::chat_template::parse("hi{% if tools %} tools{% endif %}", "", "").value();
    start_with(files, 1000, 1000);
  }
};

} // namespace session_tests
