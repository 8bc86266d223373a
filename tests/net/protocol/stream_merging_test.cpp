// Streams of the WebSocket route /v1/stream. Whichever events of a request are merged into one
// frame, the frames have the content of all events: for a client that reads at once, for one that
// reads late, and for one that limits its output by granting credit, that is, by saying how much
// more it will take.
#include "net/connection/event_source.hpp"
#include "net/protocol/stream/stream_dialect.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/catch.hpp"
#include "tests/net/protocol/dialect_fixture.hpp"
#include "tests/support/operations.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::test;
using namespace twill::testing;
using kind = actors::output_part_kind;

namespace {

std::int64_t number_in(const value& of, const char* name, std::int64_t otherwise) {
  const auto* member = of.find(name);
  return member == nullptr ? otherwise : *member->as_int();
}

std::string text_in(const value& of, const char* name) {
  const auto* member = of.find(name);
  return member == nullptr ? "" : *member->as_string();
}

struct call {
  std::string name, id, arguments;
  bool complete = false;
  bool operator==(const call&) const = default;
};

/// All that was said of one choice.
struct said {
  std::string text, reasoning, finish;
  value stop_reason;
  std::vector<std::int64_t> tokens;
  std::vector<std::string> scored; ///< tokens with log-probabilities
  std::map<std::int64_t, call> calls;
  bool operator==(const said&) const = default;
};

struct whole {
  std::map<std::int64_t, said> choices;
  std::int64_t prompt_tokens = -1, scored_prompt = 0, completion_tokens = 0, seq = -1;
  std::string stored;
  bool done = false;
  bool operator==(const whole&) const = default;
};

const std::string chat = R"("messages":[{"role":"user","content":"x"}],)"
                         R"("tools":[{"type":"function","function":{"name":"f"}}])";

struct form {
  int n = 1;
  bool logprobs = false, tokens = true, text = true, parallel = true, store = false;
  bool parts = false; ///< the engine parses the output: text comes as parts alone
};

void add_text(const actors::event& ev, const form& how, said& to) {
  to.text += ev.text;
  for (const auto& part : ev.parts) {
    if (part.kind == kind::text) to.text += part.text;
    if (part.kind == kind::reasoning) to.reasoning += part.text;
    if (part.call < 0 || (part.call > 0 && !how.parallel)) continue;
    call& one = to.calls[part.call];
    if (part.kind == kind::call_begin) {
      one.name += part.text;
      one.id += part.call_id;
    }
    if (part.kind == kind::call_arguments) one.arguments += part.text;
    if (part.kind == kind::call_end) one.complete = part.complete;
  }
}

/// What a client must know after `n` events, of which it had the first `had` before.
whole said_by(const std::vector<actors::event>& events, std::size_t n, std::size_t had,
              const form& how, const std::string& stored) {
  whole all;
  for (std::size_t i = 0; i < n; ++i) {
    const auto& ev = events[i];
    all.completion_tokens += static_cast<std::int64_t>(ev.tokens.size());
    if (ev.last) all.done = true;
    if (how.store && (i >= had || ev.last)) all.seq = static_cast<std::int64_t>(i);
    if (i < had) continue;
    if (ev.started) {
      all.prompt_tokens = ev.use.prompt_tokens;
      all.scored_prompt = static_cast<std::int64_t>(ev.prompt_scores.size());
      all.stored = stored;
      continue;
    }
    said& to = all.choices[how.n > 1 ? ev.choice : 0];
    if (how.text) add_text(ev, how, to);
    for (const auto& token : ev.tokens) {
      if (how.tokens) to.tokens.push_back(token.chosen.id);
      if (how.logprobs)
        to.scored.push_back(token.chosen.bytes + "/" + std::to_string(token.top.size()));
    }
    if (!ev.finish.has_value()) continue;
    to.finish = *ev.finish == actors::finish_reason::stop     ? "stop"
                : *ev.finish == actors::finish_reason::length ? "length"
                                                              : "tool_calls";
    if (!ev.stop_string.empty())
      to.stop_reason = value(ev.stop_string);
    else if (ev.stop_token == 7 || ev.stop_token == 8)
      to.stop_reason = value(std::int64_t{ev.stop_token});
  }
  if (!all.done) all.completion_tokens = 0; // usage is sent with the end
  return all;
}

std::string shown(const whole& all) {
  std::string out;
  for (const auto& [index, one] : all.choices) {
    out += "\n" + std::to_string(index) + ": " + one.text + " | " + one.reasoning + " | " +
           one.finish + " " + (one.stop_reason.is_null() ? "" : "a reason") + " |";
    for (const auto id : one.tokens)
      out += " " + std::to_string(id);
    for (const auto& token : one.scored)
      out += " " + token;
    for (const auto& [i, c] : one.calls)
      out += " | " + c.name + " " + c.id + " " + c.arguments + (c.complete ? " complete" : "");
  }
  return out;
}

void add_frame(const value& frame, whole& to) {
  demand(!to.done, "nothing follows the end");
  to.prompt_tokens = number_in(frame, "prompt_tokens", to.prompt_tokens);
  if (const auto* scores = frame.find("prompt_logprobs"))
    to.scored_prompt += static_cast<std::int64_t>(scores->as_list()->size());
  to.stored += text_in(frame, "stored");
  const auto seq = number_in(frame, "seq", to.seq);
  demand(frame.find("seq") == nullptr || seq > to.seq, "numbers rise");
  to.seq = seq;
  if (frame.find("done") != nullptr) {
    to.done = true;
    to.completion_tokens = *at(frame, "usage", "completion_tokens").as_int();
  }
  const bool output = frame.find("tokens") != nullptr || frame.find("text") != nullptr ||
                      frame.find("logprobs") != nullptr || frame.find("finish") != nullptr ||
                      frame.find("choice") != nullptr;
  demand(!output || frame.find("prompt_tokens") == nullptr, "admission has a frame of its own");
  if (!output) return;
  said& one = to.choices[number_in(frame, "choice", 0)];
  demand(one.finish.empty(), "nothing follows the end of a choice");
  one.text += text_in(frame, "text");
  one.reasoning += text_in(frame, "reasoning");
  if (const auto* tokens = frame.find("tokens"))
    for (const value& id : *tokens->as_list())
      one.tokens.push_back(*id.as_int());
  if (const auto* scores = frame.find("logprobs"))
    for (const value& score : *scores->as_list())
      one.scored.push_back(text_in(score, "token") + "/" +
                           std::to_string(at(score, "top_logprobs").as_list()->size()));
  if (const auto* calls = frame.find("calls"))
    for (const value& part : *calls->as_list()) {
      call& about = one.calls[*at(part, "index").as_int()];
      about.name += text_in(part, "name");
      about.id += text_in(part, "id");
      about.arguments += text_in(part, "arguments");
      if (part.find("complete") != nullptr) about.complete = true;
    }
  if (frame.find("finish") == nullptr) return;
  one.finish = text_in(frame, "finish");
  one.stop_reason = at(frame, "stop_reason");
}

/// One request, its events and what its client has been sent.
struct running {
  std::string id, stored;
  engine_requests::key key = 0;
  form how;
  std::vector<actors::event> events;
  std::vector<bool> open;          ///< by choice
  std::vector<std::int32_t> calls; ///< by choice: the calls begun so far
  std::vector<bool> in_call;       ///< by choice: the last call is not over
  std::size_t had = 0;
  bool limited = false;
  std::int64_t granted = 0;
  whole read;

  /// How many events may have been sent.
  std::size_t sendable() const {
    std::int64_t sent = 0;
    std::size_t n = 0;
    for (; n < events.size(); ++n) {
      const auto tokens = static_cast<std::int64_t>(events[n].tokens.size());
      if (n < had) continue;
      if (limited && tokens > 0 && sent >= granted) break;
      sent += tokens;
    }
    return n;
  }
  bool all_came() const { return !events.empty() && events.back().last; }
};

class socket {
public:
  void apply(const operation& op) {
    running* one = all_.empty() ? nullptr : all_[op.a % all_.size()].get();
    switch (op.kind % 16) {
    case 0:
      if (all_.size() < 4) submit(op);
      break;
    case 1:
      read_all();
      break;
    case 2:
      read_one();
      break;
    case 3:
      if (one != nullptr) grant(*one, 1 + op.b % 6);
      break;
    case 4:
      if (one != nullptr && one->how.store && one->all_came() && all_.size() < 4) resume(*one, op);
      break;
    default:
      if (one != nullptr && !one->all_came()) event(*one, op);
    }
  }

  void end() {
    for (const auto& one : all_) {
      for (std::uint32_t i = 0; !one->all_came(); ++i)
        event(*one, {0, 0, i % 8 == 7 ? 3u : 1u, 5 + i});
      if (!one->read.done && one->limited && known(*one)) grant(*one, 10'000);
    }
    read_all();
    for (const auto& one : all_)
      demand(one->read.done, "every request ends");
    demand(b_.spoken->idle(), "a socket is idle at the end");
    demand_equal(b_.spoken->waiting_bytes(), 0u, "what waits at the end");
  }

private:
  static std::string yes(bool is) { return is ? "true" : "false"; }

  bool known(const running& one) const { return one.sendable() < one.events.size(); }

  void submit(const operation& op) {
    auto one = std::make_unique<running>();
    form& how = one->how;
    how.n = 1 + static_cast<int>(op.a % 3);
    how.logprobs = op.b % 2 == 0;
    how.tokens = op.b / 2 % 4 != 0;
    how.text = op.b / 8 % 4 != 0;
    how.parallel = op.b / 32 % 2 == 0;
    how.store = op.b / 64 % 2 == 0;
    how.parts = op.b / 128 % 2 == 0;
    one->limited = op.c % 2 == 0;
    one->granted = op.c / 2 % 5;
    one->id = std::to_string(++last_id_);
    b_.say(R"({"op":"submit","id":)" + one->id + "," + (how.parts ? chat : R"("prompt":"x")") +
           R"(,"stop_token_ids":[7,8],"n":)" + std::to_string(how.n) +
           (how.logprobs ? ",\"logprobs\":2" : "") + ",\"return_tokens\":" + yes(how.tokens) +
           ",\"return_text\":" + yes(how.text) + ",\"store\":" + yes(how.store) +
           ",\"parallel_tool_calls\":" + yes(how.parallel) +
           (one->limited ? ",\"credit\":" + std::to_string(one->granted) : "") + "}");
    one->key = b_.host.started.size();
    demand(one->key == ++keys_, "a request is started");
    if (how.store) one->stored = b_.host.stored.back().id;
    one->open.assign(static_cast<std::size_t>(how.n), true);
    one->calls.assign(static_cast<std::size_t>(how.n), 0);
    one->in_call.assign(static_cast<std::size_t>(how.n), false);
    auto first = started(3 + static_cast<std::int32_t>(op.a % 5));
    if (op.c % 3 == 0) first.prompt_scores.assign(2, piece("p").tokens[0]);
    deliver(*one, first);
    all_.push_back(std::move(one));
  }

  /// Resumes a stored stream after one of its events.
  void resume(const running& of, const operation& op) {
    auto one = std::make_unique<running>();
    one->how = of.how;
    one->stored = of.stored;
    one->had = op.b % (of.events.size() + 1);
    one->limited = op.c % 2 == 0;
    one->granted = op.c / 2 % 5;
    one->id = std::to_string(++last_id_);
    b_.say(R"({"op":"resume","id":)" + one->id + R"(,"stored":")" + one->stored + "\"" +
           (one->had > 0 ? ",\"after\":" + std::to_string(one->had - 1) : "") +
           (one->limited ? ",\"credit\":" + std::to_string(one->granted) : "") + "}");
    one->key = b_.host.started.size();
    demand(one->key == ++keys_, "a stored stream is followed");
    b_.event(one->key, {}); // the stored stream was found
    const auto events = of.events;
    all_.push_back(std::move(one));
    for (const auto& ev : events)
      deliver(*all_.back(), ev);
  }

  void deliver(running& one, const actors::event& ev) {
    one.events.push_back(ev);
    b_.event(one.key, ev);
  }

  void event(running& one, const operation& op) {
    std::vector<std::int32_t> open;
    for (std::int32_t i = 0; i < one.how.n; ++i)
      if (one.open[static_cast<std::size_t>(i)]) open.push_back(i);
    const auto choice = open[op.c % open.size()];
    const auto at = static_cast<std::size_t>(choice);
    actors::event ev;
    ev.choice = choice;
    for (std::uint32_t i = 0; i < op.c / 4 % 4; ++i) {
      const auto id = ++last_token_;
      const std::string bytes = "t" + std::to_string(id);
      ev.tokens.push_back({{id, bytes, -0.25f}, {}});
      ev.tokens.back().top.resize(op.b % 3, {id, "~", -2.0f});
      if (!one.how.parts && op.b % 4 != 1) ev.text += bytes;
    }
    if (!one.how.parts && op.b % 64 == 9) ev.text += std::string(33'000, 'l'); // fills a frame
    if (one.how.parts && op.b % 8 != 1) add_parts(one, at, op, ev);
    if (op.b % 8 == 3) {
      const actors::finish_reason why[] = {actors::finish_reason::stop,
                                           actors::finish_reason::length,
                                           actors::finish_reason::tool_calls};
      ev.finish = why[op.a % 3];
      if (op.a % 4 == 1) ev.stop_string = "END";
      if (op.a % 4 == 2) ev.stop_token = 7 + static_cast<std::int32_t>(op.a / 4 % 3);
      one.open[at] = false;
      ev.last = open.size() == 1;
    }
    if (says_nothing(ev)) ev.tokens.push_back({{++last_token_, "+", -1.0f}, {}});
    deliver(one, ev);
  }

  void add_parts(running& one, std::size_t at, const operation& op, actors::event& ev) {
    std::int32_t& calls = one.calls[at];
    ev.parts.push_back({kind::text, "T" + std::to_string(op.a % 7), -1, true, ""});
    for (std::uint32_t i = 0; i < 1 + op.a % 4; ++i) {
      const auto what = (op.a / 4 + i * (1 + op.b % 5)) % 3;
      if (what == 0) {
        ev.parts.push_back({kind::reasoning, "R" + std::to_string(op.c % 9), -1, true, ""});
      } else if (!one.in_call[at]) {
        ev.parts.push_back({kind::call_begin, "f" + std::to_string(calls), calls, true,
                            op.c % 2 == 0 ? "id" + std::to_string(calls) : ""});
        ++calls;
        one.in_call[at] = true;
      } else if (what == 1) {
        ev.parts.push_back({kind::call_arguments, "{" + std::to_string(i), calls - 1, true, ""});
      } else {
        ev.parts.push_back({kind::call_end, "", calls - 1, op.c % 4 != 0, ""});
        one.in_call[at] = false;
      }
    }
  }

  void grant(running& one, std::int64_t n) {
    if (one.read.done || (one.all_came() && one.sendable() == one.events.size())) return;
    b_.say(R"({"op":"credit","id":)" + one.id + ",\"n\":" + std::to_string(n) + "}");
    one.granted += n;
  }

  bool read_one() {
    const auto frame = b_.frame();
    if (!frame.has_value()) return false;
    demand(frame->find("error") == nullptr, "nothing is refused");
    const auto id = *at(*frame, "id").as_int();
    for (const auto& one : all_)
      if (one->id == std::to_string(id)) add_frame(*frame, one->read);
    return true;
  }

  void read_all() {
    while (read_one()) {
    }
    for (const auto& one : all_) {
      const auto n = one->sendable();
      auto expected = said_by(one->events, n, one->had, one->how, one->stored);
      if (!one->how.store) expected.stored.clear();
      auto read = one->read;
      // A choice without anything to show may or may not have had a frame.
      std::erase_if(expected.choices, [](const auto& c) { return c.second == said{}; });
      std::erase_if(read.choices, [](const auto& c) { return c.second == said{}; });
      demand(read.choices == expected.choices, "the frames say what the events said:" +
                                                   shown(read) + "\nexpected:" + shown(expected));
      demand_equal(read.completion_tokens, expected.completion_tokens, "the tokens of the usage");
      demand_equal(read.prompt_tokens, expected.prompt_tokens, "the prompt's tokens");
      demand_equal(read.scored_prompt, expected.scored_prompt, "the prompt's scores");
      demand_equal(read.seq, expected.seq, "the number of the last event");
      demand(read == expected, "the beginning and the end");
      check_pause(*one, n);
    }
  }

  /// A request is paused exactly without credit; a stored one, only while an event waits.
  void check_pause(const running& one, std::size_t n) {
    if (one.read.done) return;
    const bool paused = b_.host.paused.contains(one.key);
    std::int64_t sent = 0;
    for (std::size_t i = one.had; i < n; ++i)
      sent += static_cast<std::int64_t>(one.events[i].tokens.size());
    const bool used_up = one.limited && sent >= one.granted;
    const bool waits = n < one.events.size();
    if (one.how.store)
      demand(!paused || waits, "what is stored is paused for nothing");
    else
      demand_equal(paused, used_up, "whether the engine is paused");
  }

  fixture<stream_dialect> b_;
  std::vector<std::unique_ptr<running>> all_;
  std::size_t keys_ = 0;
  std::int32_t last_id_ = 0, last_token_ = 99;
};

} // namespace

TEST_CASE("/v1/stream: merged frames say all that the events said") {
  CHECK(first_failure({.cases = 1000, .long_cases = 50'000, .most_operations = 80},
                      [](const operations& sequence) {
                        socket one;
                        for (const operation& op : sequence)
                          one.apply(op);
                        one.end();
                      }) == "");
}
