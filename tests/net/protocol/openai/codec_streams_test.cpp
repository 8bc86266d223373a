// Streams of the OpenAI API: however the events of a completion or chat are merged into server-sent
// events, a client that concatenates these gets the content of the whole reply, and both have the
// content of the engine's events.
#include "net/http/call_reply.hpp"
#include "net/protocol/openai/chat.hpp"
#include "net/protocol/openai/chat_reply.hpp"
#include "net/protocol/openai/completions.hpp"
#include "net/protocol/openai/completions_reply.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/catch.hpp"
#include "tests/net/support/codec_support.hpp"
#include "tests/support/operations.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::test;
using namespace twill::testing;
using kind = actors::output_part_kind;

namespace {

constexpr std::uint64_t first_key = 77;

struct function_call {
  std::string name, id, arguments;
  bool operator==(const function_call&) const = default;
};

/// All that was said of one choice.
struct said {
  std::string text, reasoning, finish;
  value stop_reason;
  std::map<std::int64_t, function_call> calls;
  std::vector<std::int64_t> ids, prompt_ids, offsets;
  std::vector<std::string> scored; ///< tokens, with their log-probabilities and alternatives
  std::int64_t prompt_scores = 0;
  bool operator==(const said&) const = default;
};
using whole = std::map<std::int64_t, said>;
constexpr std::int64_t beside_choices = -1;

struct form {
  bool chat = false, parts = false, parallel = true, legacy = false;
  bool logprobs = false, as_ids = false, ids = false, prompt_scores = false, echo = false;
  bool usage = false, continuous = false, store = false;
  int prompts = 1, n = 1;
};

form form_of(const operation& op) {
  const auto bit = [&](int i) { return (op.a >> i & 1) != 0; };
  form how;
  how.chat = bit(0);
  how.logprobs = bit(1);
  how.as_ids = bit(2) && bit(3);
  how.ids = bit(4);
  how.prompt_scores = bit(5);
  how.usage = bit(6);
  how.continuous = bit(7);
  how.store = bit(8);
  how.parts = how.chat && bit(9);
  how.legacy = how.parts && bit(10) && bit(11);
  how.parallel = !how.legacy && bit(12);
  how.echo = !how.chat && bit(13);
  how.n = 1 + static_cast<int>(op.b % 3);
  how.prompts = how.chat || how.store ? 1 : 1 + static_cast<int>(op.b / 3 % 3);
  return how;
}

std::string yes(bool is) {
  return is ? "true" : "false";
}

std::string body_of(const form& how) {
  std::string body = R"({"stop_token_ids":[7,8],"n":)" + std::to_string(how.n) +
                     ",\"return_token_ids\":" + yes(how.ids) +
                     ",\"return_tokens_as_token_ids\":" + yes(how.as_ids) +
                     ",\"stream\":true,\"store\":" + yes(how.store) +
                     ",\"stream_options\":{\"include_usage\":" + yes(how.usage) +
                     ",\"continuous_usage_stats\":" + yes(how.continuous) + "}";
  if (how.prompt_scores) body += ",\"prompt_logprobs\":1";
  if (how.chat) {
    body += R"(,"messages":[{"role":"user","content":"x"}])";
    if (how.legacy)
      body += R"(,"functions":[{"name":"f"}])";
    else if (how.parts)
      body += R"(,"tools":[{"type":"function","function":{"name":"f"}}],"parallel_tool_calls":)" +
              yes(how.parallel);
    if (how.logprobs) body += ",\"logprobs\":true,\"top_logprobs\":2";
  } else {
    body += ",\"prompt\":[";
    for (int i = 0; i < how.prompts; ++i)
      body += (i > 0 ? ",\"" : "\"") + std::string("p") + std::to_string(i) + "\"";
    body += "],\"echo\":" + yes(how.echo);
    if (how.logprobs) body += ",\"logprobs\":2";
  }
  return body + "}";
}

std::string shown(const whole& all) {
  std::string out;
  for (const auto& [index, one] : all) {
    out += "\n" + std::to_string(index) + ": " + one.text + " | " + one.reasoning + " | " +
           one.finish + " " + (one.stop_reason.is_null() ? "" : "a reason") + " |";
    for (const auto* numbers : {&one.ids, &one.prompt_ids, &one.offsets}) {
      for (const auto n : *numbers)
        out += " " + std::to_string(n);
      out += " |";
    }
    for (const auto& token : one.scored)
      out += " " + token;
    out += " | " + std::to_string(one.prompt_scores);
    for (const auto& [i, c] : one.calls)
      out += " | " + std::to_string(i) + " " + c.name + " " + c.id + " " + c.arguments;
  }
  return out;
}

std::int64_t characters(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

// --- what a client reads -------------------------------------------------------------------------

std::string text_in(const value& of, const char* name) {
  const auto* member = of.find(name);
  return member == nullptr || member->is_null() ? "" : *member->as_string();
}

void add_list(const value& of, const char* name, std::vector<std::int64_t>& to) {
  const auto* list = of.find(name);
  if (list == nullptr || list->is_null()) return;
  for (const value& one : *list->as_list())
    to.push_back(*one.as_int());
}

void add_score(const value& token, const std::string& logprob, std::size_t n_others, said& to) {
  to.scored.push_back(*token.as_string() + "/" + logprob + "/" + std::to_string(n_others));
}

std::string number(const value& of) {
  if (of.is_null()) return "null";
  return std::to_string(of.as_double() != nullptr ? *of.as_double()
                                                  : static_cast<double>(*of.as_int()));
}

void add_scores(const value& choice, const form& how, said& to) {
  const value& scores = at(choice, "logprobs");
  demand_equal(scores.is_null(), !how.logprobs, "whether there are no log-probabilities");
  if (scores.is_null()) return;
  if (how.chat) {
    for (const value& one : *at(scores, "content").as_list())
      add_score(at(one, "token"), number(at(one, "logprob")),
                at(one, "top_logprobs").as_list()->size(), to);
    return;
  }
  const auto& tokens = *at(scores, "tokens").as_list();
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const int n = static_cast<int>(i);
    const value& others = at(scores, "top_logprobs", n);
    add_score(tokens[i], number(at(scores, "token_logprobs", n)),
              others.is_null() ? 0 : others.as_object()->size(), to);
  }
  for (const char* name : {"token_logprobs", "top_logprobs", "text_offset"})
    demand_equal(at(scores, name).as_list()->size(), tokens.size(), "lists of one length");
  add_list(scores, "text_offset", to.offsets);
}

void add_calls(const value& message, bool streamed, said& to) {
  if (const auto* legacy = message.find("function_call")) {
    to.calls[0].name += text_in(*legacy, "name");
    to.calls[0].arguments += text_in(*legacy, "arguments");
  }
  const auto* calls = message.find("tool_calls");
  if (calls == nullptr) return;
  std::int64_t next = 0;
  for (const value& one : *calls->as_list()) {
    auto& about = to.calls[streamed ? *at(one, "index").as_int() : next++];
    about.id += text_in(one, "id");
    about.name += text_in(at(one, "function"), "name");
    about.arguments += text_in(at(one, "function"), "arguments");
  }
}

/// One entry of `choices`, of a chunk or of a whole reply.
void add_choice(const value& choice, const form& how, bool streamed, whole& to) {
  const std::int64_t index = *at(choice, "index").as_int();
  const bool first = !to.contains(index);
  said& one = to[index];
  demand(one.finish.empty(), "nothing follows the end of a choice");
  if (how.chat) {
    const value& message = at(choice, streamed ? "delta" : "message");
    demand_equal(message.find("role") != nullptr, first, "the role comes first and once");
    one.text += text_in(message, "content");
    one.reasoning += text_in(message, "reasoning_content");
    add_calls(message, streamed, one);
  } else {
    one.text += *at(choice, "text").as_string();
    if (how.ids) add_list(choice, "prompt_token_ids", one.prompt_ids);
    if (const auto* scores = choice.find("prompt_logprobs"))
      one.prompt_scores += static_cast<std::int64_t>(scores->as_list()->size());
  }
  add_scores(choice, how, one);
  demand_equal(choice.find("token_ids") != nullptr, how.ids, "whether there are ids");
  add_list(choice, "token_ids", one.ids);
  one.finish = text_in(choice, "finish_reason");
  one.stop_reason = at(choice, "stop_reason");
}

/// What a chat reply has beside its choices is compared as one more choice.
void add_extras(const value& reply, const form& how, whole& to) {
  if (!how.chat) return;
  said& beside = to[beside_choices];
  add_list(reply, "prompt_token_ids", beside.prompt_ids);
  if (const auto* scores = reply.find("prompt_logprobs"))
    beside.prompt_scores += static_cast<std::int64_t>(scores->as_list()->size());
}

/// The body of a chunked message, which must be whole and end what it begins.
std::string without_chunks(const std::string& bytes) {
  std::string body;
  std::size_t from = 0;
  for (;;) {
    const auto line = bytes.find("\r\n", from);
    demand(line != bytes.npos && line > from, "a chunk has a size");
    const auto size = std::stoul(bytes.substr(from, line - from), nullptr, 16);
    demand(bytes.substr(line + 2 + size, 2) == "\r\n", "a chunk has the size that it says");
    from = line + 4 + size;
    if (size == 0) break;
    body += bytes.substr(line + 2, size);
  }
  demand_equal(from, bytes.size(), "the end of the last chunk");
  return body;
}

struct sse_event {
  std::string id, data;
};

/// The events of a stream, without comments.
std::vector<sse_event> events_of(const std::string& stream) {
  std::vector<sse_event> out;
  for (std::size_t from = 0; from < stream.size();) {
    const auto end = stream.find("\n\n", from);
    demand(end != stream.npos, "an event ends");
    sse_event one;
    for (auto line = from; line < end;) {
      const auto next = std::min(stream.find('\n', line), end);
      const std::string text = stream.substr(line, next - line);
      if (text.starts_with("id: "))
        one.id = text.substr(4);
      else if (text.starts_with("data: ") && one.data.empty())
        one.data = text.substr(6);
      else
        demand(text.starts_with(":"), "a line of an event: " + text);
      line = next + 1;
    }
    if (!one.data.empty()) out.push_back(std::move(one));
    from = end + 2;
  }
  return out;
}

// --- one call and its events ---------------------------------------------------------------------

/// The engine's side: the events that it generates, and what a client must learn from them.
class generation {
public:
  explicit generation(const operation& op) : how(form_of(op)) {
    open.assign(static_cast<std::size_t>(how.prompts * how.n), true);
    calls.assign(open.size(), 0);
    in_call.assign(open.size(), false);
    for (int r = 0; r < how.prompts; ++r) {
      auto first = started(3 + static_cast<std::int32_t>(op.c % 4));
      first.use.cached_tokens = static_cast<std::int32_t>(op.c / 4 % 3);
      if (how.ids) first.prompt_ids = {r, r + 1};
      if (how.prompt_scores) first.prompt_scores.assign(3, piece("p").tokens[0]);
      prompt_tokens += first.use.prompt_tokens;
      cached_tokens += first.use.cached_tokens;
      events.emplace_back(static_cast<std::size_t>(r), first);
      for (int c = 0; c < how.n; ++c)
        begin(r, c, first);
    }
  }

  bool over() const {
    return std::none_of(open.begin(), open.end(), [](bool is) { return is; });
  }

  void add(const operation& op) {
    std::vector<std::size_t> running;
    for (std::size_t i = 0; i < open.size(); ++i)
      if (open[i]) running.push_back(i);
    if (running.empty()) return;
    const std::size_t at = running[op.c % running.size()];
    const std::size_t request = at / static_cast<std::size_t>(how.n);
    actors::event ev;
    ev.choice = static_cast<std::int32_t>(at % static_cast<std::size_t>(how.n));
    said& to = expected[static_cast<std::int64_t>(at)];
    for (std::uint32_t i = 0; i < op.c / 4 % 4; ++i) {
      const auto id = ++last_token;
      const std::string bytes = (op.a + i) % 3 == 0 ? "\xc3\xa9" : "t" + std::to_string(id);
      ev.tokens.push_back({{id, bytes, -0.25f * static_cast<float>(1 + i)}, {}});
      if (op.b % 2 == 0) ev.tokens.back().top = {{id, bytes, -0.25f}, {id + 1, "~", -2.0f}};
      note_token(ev.tokens.back(), static_cast<std::int64_t>(at));
      if (!how.parts && op.b % 4 != 1) ev.text += bytes;
    }
    to.text += ev.text;
    if (how.parts && op.b % 8 != 1) add_parts(at, op, ev, to);
    if (op.b % 8 == 3) finish(at, request, op, ev, to);
    events.emplace_back(request, std::move(ev));
  }

  form how;
  std::vector<std::pair<std::size_t, actors::event>> events;
  whole expected;
  std::int64_t prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0;

private:
  void begin(int request, int c, const actors::event& first) {
    said& to = expected[request * how.n + c];
    const std::string prompt = "p" + std::to_string(request);
    if (how.echo) to.text = prompt;
    said& of_prompt = how.chat ? expected[beside_choices] : to;
    of_prompt.prompt_ids.assign(first.prompt_ids.begin(), first.prompt_ids.end());
    of_prompt.prompt_scores = static_cast<std::int64_t>(first.prompt_scores.size());
    if (!how.echo || !how.logprobs) return;
    for (std::size_t i = 0; i < first.prompt_scores.size(); ++i) {
      // The scored tokens "p" are not all of the text "p0", which is counted whole.
      const std::string token = how.as_ids ? "token_id:100" : "p";
      to.scored.push_back(token + (i == 0 ? "/null/0" : "/" + number(value(-0.25)) + "/2"));
      to.offsets.push_back(i == 0 ? 0 : 1);
    }
    offset[request * how.n + c] = characters(prompt);
  }

  void note_token(const actors::token_output& token, std::int64_t at) {
    said& to = expected[at];
    ++completion_tokens;
    if (how.ids) to.ids.push_back(token.chosen.id);
    if (!how.logprobs) return;
    const std::string text =
        how.as_ids ? "token_id:" + std::to_string(token.chosen.id) : token.chosen.bytes;
    // Completions list the chosen token among its alternatives.
    const std::size_t others =
        how.chat ? token.top.size() : std::max<std::size_t>(1, token.top.size());
    to.scored.push_back(text + "/" + number(value(static_cast<double>(token.chosen.logprob))) +
                        "/" + std::to_string(others));
    if (how.chat) return;
    to.offsets.push_back(offset[at]);
    offset[at] += characters(token.chosen.bytes);
  }

  void add_parts(std::size_t at, const operation& op, actors::event& ev, said& to) {
    std::int32_t& n_calls = calls[at];
    const auto add = [&](kind what, std::string text, std::int32_t call, std::string id = "") {
      if (what == kind::text) to.text += text;
      if (what == kind::reasoning) to.reasoning += text;
      if (call == 0 || (call > 0 && how.parallel)) {
        function_call& one = to.calls[call];
        if (what == kind::call_begin) one.name += text;
        if (what == kind::call_begin && !how.legacy) one.id += id;
        if (what == kind::call_arguments) one.arguments += text;
      }
      ev.parts.push_back({what, std::move(text), call, true, std::move(id)});
    };
    for (std::uint32_t i = 0; i < 1 + op.a % 4; ++i) {
      const auto what = (op.a / 4 + i * (1 + op.b % 5)) % 4;
      if (what == 0) {
        add(kind::reasoning, "R" + std::to_string(op.c % 9), -1);
      } else if (what == 1) {
        add(kind::text, "T" + std::to_string(op.a % 7), -1);
      } else if (!in_call[at]) {
        add(kind::call_begin, "f" + std::to_string(n_calls), n_calls,
            op.c % 2 == 0 ? "id" + std::to_string(n_calls) : "");
        ++n_calls;
        in_call[at] = true;
      } else if (what == 2) {
        add(kind::call_arguments, "{" + std::to_string(i), n_calls - 1);
      } else {
        add(kind::call_end, "", n_calls - 1);
        in_call[at] = false;
      }
    }
  }

  void finish(std::size_t at, std::size_t request, const operation& op, actors::event& ev,
              said& to) {
    const actors::finish_reason why[] = {actors::finish_reason::stop, actors::finish_reason::length,
                                         actors::finish_reason::tool_calls};
    const char* const names[] = {"stop", "length", how.legacy ? "function_call" : "tool_calls"};
    ev.finish = why[op.a % 3];
    to.finish = names[op.a % 3];
    if (op.a % 4 == 1) ev.stop_string = "END";
    if (op.a % 4 == 2) ev.stop_token = 7 + static_cast<std::int32_t>(op.a / 4 % 3);
    if (op.a % 4 == 1)
      to.stop_reason = value("END");
    else if (ev.stop_token == 7 || ev.stop_token == 8)
      to.stop_reason = value(std::int64_t{ev.stop_token});
    open[at] = false;
    const auto first = open.begin() + static_cast<std::ptrdiff_t>(request) * how.n;
    ev.last = std::none_of(first, first + how.n, [](bool is) { return is; });
  }

  std::vector<bool> open, in_call; ///< by choice of all requests
  std::vector<std::int32_t> calls; ///< by choice: the calls begun so far
  std::map<std::int64_t, std::int64_t> offset;
  std::int32_t last_token = 99;
};

std::unique_ptr<reply_encoder> encoder_of(const codec_fixture& b, const form& how,
                                          const reply_identity& identity, bool stream,
                                          std::int64_t after = -1) {
  const value body = json(body_of(how));
  const auto set = [&](reply_options& options) {
    options.identity = identity;
    options.stream = stream;
    options.after = after;
  };
  if (how.chat) {
    auto asked = read_chat(body, b.context);
    demand(asked.ok(), "a chat is read");
    set(asked.value().options);
    return std::make_unique<chat_reply>(std::move(asked.value().options), 1);
  }
  auto asked = read_completions(body, b.context);
  demand(asked.ok(), "a completion is read");
  demand_equal(asked.value().requests.size(), static_cast<std::size_t>(how.prompts), "requests");
  set(asked.value().options);
  return std::make_unique<completions_reply>(std::move(asked.value().options),
                                             asked.value().requests.size(),
                                             std::move(asked.value().echoes));
}

/// Passes all events to a reply in groups as `gather` says, with comments between the groups.
std::string play(const generation& made, std::unique_ptr<reply_encoder> encoder, bool stream,
                 bool http_1_0, const operations& gather) {
  call_reply reply(std::move(encoder), stream, static_cast<std::size_t>(made.how.prompts),
                   first_key);
  reply_framing how;
  how.http_1_0 = http_1_0;
  std::string out;
  auto state = call_reply::state::running;
  std::size_t at = 0;
  for (std::size_t i = 0; at < made.events.size(); ++i) {
    const std::uint32_t n = gather.empty() ? 1 : gather[i % gather.size()].b / 3 % 5;
    if (n == 4 && stream) reply.append_filler(how, out);
    std::vector<std::pair<std::uint64_t, actors::event>> some;
    for (std::uint32_t k = 0; k < std::max(n, 1u) && at < made.events.size(); ++k, ++at)
      some.emplace_back(first_key + made.events[at].first, made.events[at].second);
    demand(state == call_reply::state::running, "it runs until its last event");
    state = reply.on_events(std::move(some), how, out);
  }
  demand(state == call_reply::state::over, "it is over with its last event");
  const auto head = out.find("\r\n\r\n");
  demand(head != out.npos && out.find("HTTP/", head) == out.npos, "it has one head");
  demand(out.starts_with("HTTP/1.1 200"), "it succeeds");
  return out.substr(head + 4);
}

void check_usage(const value& use, std::int64_t prompt, std::int64_t cached,
                 std::int64_t completion) {
  demand_equal(*at(use, "prompt_tokens").as_int(), prompt, "the prompts' tokens");
  demand_equal(*at(use, "prompt_tokens_details", "cached_tokens").as_int(), cached, "cached ones");
  demand_equal(*at(use, "completion_tokens").as_int(), completion, "the outputs' tokens");
  demand_equal(*at(use, "total_tokens").as_int(), prompt + completion, "all tokens");
}

/// Tool calls that have no id from the engine get ids when the reply is written. These ids exist,
/// differ from each other, and are the same wherever the call appears.
void check_ids(whole& read, const whole& expected, std::set<std::string>& made_up) {
  for (auto& [index, one] : read)
    for (auto& [i, call] : one.calls) {
      const auto& wanted = expected.at(index);
      if (!wanted.calls.contains(i) || !wanted.calls.at(i).id.empty() || call.id.empty()) continue;
      demand(call.id.starts_with("call_"), "the id of a call");
      demand(made_up.insert(call.id).second, "calls have ids of their own");
      call.id.clear();
    }
}

/// Checks a stream and returns the ids that the reply generated.
std::set<std::string> check_stream(const generation& made, const std::vector<sse_event>& events,
                                   const reply_identity& identity) {
  const form& how = made.how;
  demand(!events.empty() && events.back().data == "[DONE]" && events.back().id.empty(),
         "a stream ends with its mark");
  const bool ends_with_usage = how.usage;
  whole read;
  std::int64_t last_use = -1;
  for (std::size_t i = 0; i + 1 < events.size(); ++i) {
    demand(events[i].id == (how.store ? identity.id + ":" + std::to_string(i) : ""), "its id");
    const value chunk = json(events[i].data);
    demand(at(chunk, "id") == value(identity.id), "the id of the reply");
    demand(at(chunk, "object") == value(how.chat ? "chat.completion.chunk" : "text_completion"),
           "the object");
    demand(at(chunk, "created") == value(identity.created_unix_s), "when it was made");
    demand(at(chunk, "model") == value(identity.model), "the model");
    const auto& choices = *at(chunk, "choices").as_list();
    const bool end = ends_with_usage && i + 2 == events.size();
    demand_equal(choices.size(), end ? 0u : 1u, "the choices of a chunk");
    for (const value& choice : choices)
      add_choice(choice, how, true, read);
    add_extras(chunk, how, read);
    const auto* use = chunk.find("usage");
    demand_equal(use != nullptr, how.usage || how.continuous, "whether chunks have usage");
    if (use == nullptr) continue;
    demand_equal(use->is_null(), !end && !how.continuous, "whether this chunk has usage");
    if (use->is_null()) continue;
    const auto now = *at(*use, "completion_tokens").as_int();
    demand(now >= last_use && now <= made.completion_tokens, "usage rises");
    last_use = now;
    if (end) check_usage(*use, made.prompt_tokens, made.cached_tokens, made.completion_tokens);
  }
  std::set<std::string> made_up;
  check_ids(read, made.expected, made_up);
  demand(read == made.expected, "the stream says what the events said:" + shown(read) +
                                    "\nexpected:" + shown(made.expected));
  return made_up;
}

void play_call(const operations& sequence) {
  generation made(sequence.empty() ? operation{} : sequence.front());
  for (std::size_t i = 1; i < sequence.size(); ++i)
    made.add(sequence[i]);
  for (std::uint32_t i = 0; !made.over(); ++i)
    made.add({0, i, i % 8 == 7 ? 3u : 1u, 5 + i});
  const form& how = made.how;
  const codec_fixture b;
  const reply_identity identity{"made-up-id", "test-model", 1234};
  const auto stream = [&](bool old, std::int64_t after) {
    const auto body = play(made, encoder_of(b, how, identity, true, after), true, old, sequence);
    return events_of(old ? body : without_chunks(body));
  };
  const auto all = stream(false, -1);
  auto made_up = check_stream(made, all, identity);
  const auto plain = stream(true, -1);
  demand_equal(plain.size(), all.size(), "the events for HTTP/1.0");
  for (std::size_t i = 0; i < all.size(); ++i)
    demand(plain[i].data == all[i].data, "an event for HTTP/1.0");
  if (how.store) { // a client that reconnects gets the rest
    const std::size_t had = sequence.size() % all.size();
    const auto rest = stream(false, static_cast<std::int64_t>(had) - 1);
    demand_equal(rest.size(), all.size() - had, "the events that are left");
    for (std::size_t i = 0; i < rest.size(); ++i)
      demand(rest[i].id == all[had + i].id && rest[i].data == all[had + i].data, "one of the rest");
  }

  const value reply = json(play(made, encoder_of(b, how, identity, false), false, false, sequence));
  whole read;
  for (const value& choice : *at(reply, "choices").as_list())
    add_choice(choice, how, false, read);
  add_extras(reply, how, read);
  std::set<std::string> again;
  check_ids(read, made.expected, again);
  demand(again == made_up, "ids of calls stay");
  demand(read == made.expected, "the whole reply says what the events said:" + shown(read) +
                                    "\nexpected:" + shown(made.expected));
  check_usage(at(reply, "usage"), made.prompt_tokens, made.cached_tokens, made.completion_tokens);
}

} // namespace

TEST_CASE("Server-sent events of completions and chats say all that the events said") {
  CHECK(first_failure({.cases = 400, .long_cases = 40'000, .most_operations = 40}, play_call) ==
        "");
}
