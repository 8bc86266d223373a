#include "tools/twill-bench/null/replies.hpp"

#include <algorithm>
#include <initializer_list>

#include "tools/twill-bench/engine/json_scan.hpp"

namespace twill::bench {
namespace {

namespace js = json_scan;

constexpr std::int64_t most_output_tokens = 1'000'000;
constexpr std::int64_t bytes_per_token = 4; // of English text, roughly

std::string number(std::int64_t n) {
  return std::to_string(n);
}

std::string event(const std::string& json) {
  return "data: " + json + "\n\n";
}

std::string words(std::int64_t n) {
  std::string out;
  for (std::int64_t i = 0; i < n; ++i)
    out += " a";
  return out;
}

std::string openai_usage(const null_request& r) {
  return R"({"prompt_tokens":)" + number(r.input_tokens) + R"(,"completion_tokens":)" +
         number(r.output_tokens) + R"(,"total_tokens":)" +
         number(r.input_tokens + r.output_tokens) + "}";
}

null_replies openai(bool chat, const null_request& r) {
  const std::string head = R"({"id":"null","object":")" +
                           std::string(chat ? "chat.completion.chunk" : "text_completion") +
                           R"(","created":0,"model":"null","choices":[{"index":0,)";
  const auto content = [&](const std::string& text, bool whole) {
    if (!chat) return R"("text":")" + text + "\"";
    return (whole ? R"("message":{"role":"assistant","content":")" : R"("delta":{"content":")") +
           text + "\"}";
  };
  null_replies out;
  out.token = event(head + content(" a", false) + R"(,"finish_reason":null}]})");
  out.last = event(head + content(" a", false) + R"(,"finish_reason":"length"}]})");
  out.end =
      event(R"({"id":"null","choices":[],"usage":)" + openai_usage(r) + "}") + event("[DONE]");
  if (!r.stream)
    out.whole = head + content(words(r.output_tokens), true) +
                R"(,"finish_reason":"length"}],"usage":)" + openai_usage(r) + "}";
  return out;
}

null_replies llama_cpp(const null_request& r) {
  const std::string end = R"("stop":true,"stop_type":"limit","tokens_evaluated":)" +
                          number(r.input_tokens) + R"(,"tokens_predicted":)" +
                          number(r.output_tokens) + "}";
  null_replies out;
  out.token = out.last = event(R"({"content":" a","tokens":[5],"stop":false})");
  out.end = event(R"({"content":"",)" + end);
  if (!r.stream) out.whole = R"({"content":")" + words(r.output_tokens) + "\"," + end;
  return out;
}

null_replies tgi(const null_request& r) {
  const std::string details = R"({"finish_reason":"length","generated_tokens":)" +
                              number(r.output_tokens) + R"(,"input_length":)" +
                              number(r.input_tokens) + "}";
  const std::string token =
      R"({"index":1,"token":{"id":5,"text":" a","logprob":-1.0,"special":false},)";
  null_replies out;
  out.token = event(token + R"("generated_text":null,"details":null})");
  out.last = event(token + R"("generated_text":"","details":)" + details + "}");
  if (!r.stream)
    out.whole =
        R"({"generated_text":")" + words(r.output_tokens) + R"(","details":)" + details + "}";
  return out;
}

null_replies twill_stream(const null_request& r) {
  const std::string head = R"({"id":")" + r.lane + "\",";
  null_replies out;
  out.token = out.last = head + R"("tokens":[5],"text":" a"})";
  out.end = head + R"("finish":"length","usage":)" + openai_usage(r) + R"(,"done":true})";
  return out;
}

null_replies responses(const null_request& r) {
  const std::string lane = r.lane.empty() ? "" : R"("stream_id":")" + r.lane + "\",";
  null_replies out;
  out.token = out.last = R"({"type":"response.output_text.delta",)" + lane + R"("delta":" a"})";
  out.end = R"({"type":"response.incomplete",)" + lane +
            R"("response":{"incomplete_details":{"reason":"max_output_tokens"},"usage":)" +
            R"({"input_tokens":)" + number(r.input_tokens) + R"(,"output_tokens":)" +
            number(r.output_tokens) + "}}}";
  return out;
}

/// The value of the first of `keys` that `body` has.
std::string_view first_of(std::string_view body, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (const auto found = js::member(body, key); js::present(found)) return found;
  return {};
}

} // namespace

bool known_null_route(std::string_view target) {
  return target == "/v1/completions" || target == "/v1/chat/completions" ||
         target == "/completion" || target == "/generate" || target == "/generate_stream";
}

null_request read_null_request(std::string_view target, std::string_view body) {
  null_request out;
  const std::string_view prompt =
      first_of(body, {"prompt", "tokens", "inputs", "input", "messages"});
  const auto n_ids = !prompt.empty() && prompt.front() == '[' && target != "/v1/chat/completions"
                         ? static_cast<std::int64_t>(js::length(prompt))
                         : 0;
  out.input_tokens =
      n_ids > 0 ? n_ids : std::max<std::int64_t>(1, std::int64_t(prompt.size()) / bytes_per_token);
  std::string_view asked =
      first_of(body, {"max_tokens", "max_completion_tokens", "n_predict", "max_output_tokens"});
  if (asked.empty()) asked = js::member(js::member(body, "parameters"), "max_new_tokens");
  out.output_tokens = std::clamp<std::int64_t>(js::integer(asked).value_or(out.output_tokens), 1,
                                               most_output_tokens);
  out.stream = target == "/generate_stream" || js::member(body, "stream") == "true";
  out.lane = js::string_body(js::member(body, target == "/v1/stream" ? "id" : "stream_id"));
  return out;
}

null_replies null_replies_for(std::string_view target, const null_request& request) {
  if (target == "/v1/stream") return twill_stream(request);
  if (target == "/v1/responses") return responses(request);
  if (target == "/completion") return llama_cpp(request);
  if (target == "/generate" || target == "/generate_stream") return tgi(request);
  return openai(target == "/v1/chat/completions", request);
}

} // namespace twill::bench
