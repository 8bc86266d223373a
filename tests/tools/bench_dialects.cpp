#include "tests/tools/bench_dialects.hpp"

#include <cstdint>

namespace twill::tests {
namespace {

std::string number(std::int64_t n) {
  return std::to_string(n);
}

std::string ids(int n) {
  std::string out = "[";
  for (int i = 0; i < n; ++i)
    out += (i ? "," : "") + number(100 + i);
  return out + "]";
}

std::string openai_usage(const script& s) {
  const int out = s.n_chunks * s.tokens_per_chunk;
  return R"({"prompt_tokens":)" + number(prompt_tokens) + R"(,"completion_tokens":)" + number(out) +
         R"(,"total_tokens":)" + number(prompt_tokens + out) + "}";
}

std::string data(const std::string& json) {
  return "data: " + json + "\n\n";
}

std::string choice(bool chat, const std::string& inner, const std::string& finish) {
  return data(R"({"id":"x","choices":[{"index":0,)" +
              (chat ? R"("delta":{)" + inner + "}" : inner) + R"(,"finish_reason":)" + finish +
              R"(}],"usage":null})");
}

std::string openai_end(bool chat, const script& s) {
  std::string text = choice(chat, chat ? "" : R"("text":"")", "\"" + s.finish + "\"");
  if (s.usage) text += data(R"({"choices":[],"usage":)" + openai_usage(s) + "}");
  return text + "data: [DONE]\n\n";
}

std::string llama_end(const script& s) {
  return data(R"({"content":"","stop":true,"stop_type":")" +
              std::string(s.finish == "stop" ? "eos" : "limit") + R"(","tokens_evaluated":)" +
              number(prompt_tokens) + R"(,"tokens_predicted":)" +
              number(s.n_chunks * s.tokens_per_chunk) + "}");
}

std::string tgi_details(const script& s) {
  return R"({"finish_reason":")" + std::string(s.finish == "stop" ? "eos_token" : "length") +
         R"(","generated_tokens":)" + number(s.n_chunks * s.tokens_per_chunk) +
         R"(,"input_length":)" + number(prompt_tokens) + "}";
}

std::string responses_end(const std::string& lane, const script& s) {
  const bool stop = s.finish == "stop";
  return R"({"type":"response.)" + std::string(stop ? "completed" : "incomplete") +
         R"(","stream_id":")" + lane + R"(","response":{"incomplete_details":)" +
         (stop ? "null" : R"({"reason":"max_output_tokens"})") + R"(,"usage":{"input_tokens":)" +
         number(prompt_tokens) + R"(,"output_tokens":)" + number(s.n_chunks * s.tokens_per_chunk) +
         "}}}";
}

bool is_chat(const std::string& target) {
  return target == "/v1/chat/completions";
}

} // namespace

std::string dialect::opening() const {
  return is_chat(target) ? choice(true, R"("role":"assistant","content":"")", "null") : "";
}

std::string dialect::chunk(const script& s, int i) const {
  if (target == "/v1/stream")
    return R"({"id":")" + lane + R"(","tokens":)" + ids(s.tokens_per_chunk) + R"(,"text":")" +
           s.text + "\"}";
  if (target == "/v1/responses")
    return R"({"type":"response.output_text.delta","stream_id":")" + lane + R"(","delta":")" +
           s.text + "\"}";
  if (target == "/completion")
    return data(R"({"content":")" + s.text + R"(","tokens":)" + ids(s.tokens_per_chunk) +
                R"(,"stop":false})");
  if (target == "/generate_stream") {
    const bool last = i + 1 == s.n_chunks && s.end_mark;
    return data(R"({"index":)" + number(i + 1) + R"(,"token":{"id":5,"text":")" + s.text +
                R"(","logprob":-1.5,"special":false},"generated_text":)" +
                (last ? R"("all","details":)" + tgi_details(s) : R"(null,"details":null)") + "}");
  }
  const bool chat = is_chat(target);
  return choice(chat, (chat ? R"("content":")" : R"("text":")") + s.text + "\"", "null");
}

std::string dialect::end(const script& s) const {
  if (target == "/v1/stream")
    return R"({"id":")" + lane + R"(","finish":")" + s.finish + R"(","usage":)" + openai_usage(s) +
           R"(,"done":true})";
  if (target == "/v1/responses") return responses_end(lane, s);
  if (target == "/completion") return llama_end(s);
  if (target == "/generate_stream") return {};
  return openai_end(is_chat(target), s);
}

std::string dialect::error() const {
  const std::string message = R"("error":{"message":"scripted error"}})";
  if (target == "/v1/stream") return R"({"done":true,"id":")" + lane + "\"," + message;
  if (target == "/v1/responses") return R"({"type":"error","stream_id":")" + lane + "\"," + message;
  if (target == "/generate_stream")
    return data(R"({"error":"scripted error","error_type":"generation"})");
  return data("{" + message);
}

std::string dialect::whole(const script& s) const {
  std::string text;
  for (int i = 0; i < s.n_chunks; ++i)
    text += s.text;
  if (target == "/completion")
    return R"({"content":")" + text + R"(","stop":true,"stop_type":"eos","tokens_evaluated":)" +
           number(prompt_tokens) + R"(,"tokens_predicted":)" +
           number(s.n_chunks * s.tokens_per_chunk) + "}";
  if (target == "/generate")
    return R"({"generated_text":")" + text + R"(","details":)" + tgi_details(s) + "}";
  return R"({"choices":[{"index":0,)" +
         (is_chat(target) ? R"("message":{"role":"assistant","content":")" + text + "\"}"
                          : R"("text":")" + text + "\"") +
         R"(,"finish_reason":")" + s.finish + R"("}],"usage":)" + openai_usage(s) + "}";
}

} // namespace twill::tests
