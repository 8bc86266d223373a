// OpenAI's /v1/completions and /v1/chat/completions, as vLLM serves them.
#include "tools/twill-bench/engine/json_scan.hpp"
#include "tools/twill-bench/protocols/backends.hpp"
#include "tools/twill-bench/protocols/body.hpp"

namespace twill::bench {
namespace {

namespace js = json_scan;

/// The text value of a choice: completions put it in the choice, chat in `delta` or `message`.
struct piece {
  std::string_view text; ///< raw JSON, may be null or absent
  bool opens = false;    ///< only names the role
  bool extra = false;    ///< reasoning or a tool call: output that is not in `text`
};

piece piece_of(std::string_view choice, bool chat) {
  if (!chat) return {js::member(choice, "text"), false, false};
  std::string_view delta = js::member(choice, "delta");
  if (delta.empty()) delta = js::member(choice, "message");
  piece out;
  out.text = js::member(delta, "content");
  out.extra = !js::string_body(js::member(delta, "reasoning_content")).empty() ||
              !js::string_body(js::member(delta, "reasoning")).empty() ||
              js::present(js::member(delta, "tool_calls"));
  out.opens = js::present(js::member(delta, "role")) && js::string_body(out.text).empty();
  return out;
}

void read_usage(std::string_view payload, update& out) {
  const std::string_view usage = js::member(payload, "usage");
  if (!js::present(usage)) return;
  out.input_tokens = js::integer(js::member(usage, "prompt_tokens"));
  out.output_tokens = js::integer(js::member(usage, "completion_tokens"));
}

std::string message(const char* role, const std::string& text) {
  return std::string("{\"role\":\"") + role + "\",\"content\":" + quote_json(text) + "}";
}

std::string messages(const prompt& what) {
  std::string out = "[";
  for (const spoken_turn& turn : what.earlier)
    out += message("user", turn.asked) + "," + message("assistant", turn.answered) + ",";
  return out + message("user", what.text) + "]";
}

class openai_protocol final : public protocol {
public:
  openai_protocol(const serve_options& options, bool chat) : options_(options), chat_(chat) {}

  wire transport() const override { return wire::http; }
  bool takes_ids() const override { return !chat_; }
  std::string default_endpoint() const override {
    return chat_ ? "/v1/chat/completions" : "/v1/completions";
  }

  std::string request(const prompt& what, std::size_t) const override {
    body_writer body;
    body.text("model", options_.model);
    if (chat_)
      body.raw("messages", messages(what));
    else if (!what.ids.empty())
      body.ids("prompt", what.ids);
    else
      body.text("prompt", whole_text(what));
    body.integer("max_tokens", what.output_tokens);
    if (options_.stream)
      body.boolean("stream", true).raw("stream_options", "{\"include_usage\":true}");
    if (options_.n_turns > 1 && !chat_) body.boolean("return_token_ids", true);
    return body.sampling(options_).finish();
  }

  update read_event(std::string_view payload) const override {
    update out;
    if (payload == "[DONE]") {
      out.done = true;
      return out;
    }
    if (read_common(payload, out)) return out;
    const std::string_view choice = js::element(js::member(payload, "choices"), 0);
    if (choice.empty()) return out; // the usage chunk
    const piece now = piece_of(choice, chat_);
    const std::string_view ids = js::member(choice, "token_ids");
    out.ids_json = js::present(ids) ? ids : std::string_view();
    if (js::present(ids)) out.tokens = static_cast<std::int32_t>(js::length(ids));
    out.finish_reason = js::string_body(js::member(choice, "finish_reason"));
    out.text_json = now.text;
    // An empty text without a finish reason is a token that yielded no character yet (or a special
    // one): it counts. The opening role and a closing event that brings nothing do not.
    const bool has_text = !js::string_body(now.text).empty();
    const bool empty_token = js::present(now.text) && !now.opens && out.finish_reason.empty();
    out.content = has_text || now.extra || out.tokens > 0 || (out.tokens < 0 && empty_token);
    return out;
  }

  update read_whole(std::string_view body) const override {
    update out;
    if (read_common(body, out)) return out;
    const std::string_view choice = js::element(js::member(body, "choices"), 0);
    out.done = true;
    out.content = !choice.empty();
    out.malformed = choice.empty();
    out.text_json = piece_of(choice, chat_).text;
    out.ids_json = js::member(choice, "token_ids");
    out.finish_reason = js::string_body(js::member(choice, "finish_reason"));
    return out;
  }

private:
  /// Usage and errors; true when the reply is an error or no such object.
  static bool read_common(std::string_view payload, update& out) {
    const std::string_view error = js::member(payload, "error");
    if (js::present(error)) {
      out.failed = true;
      out.error_json = error;
      return true;
    }
    if (js::member(payload, "choices").empty()) {
      out.malformed = true;
      return true;
    }
    read_usage(payload, out);
    return false;
  }

  serve_options options_;
  bool chat_;
};

} // namespace

std::unique_ptr<protocol> make_openai(const serve_options& options) {
  return std::make_unique<openai_protocol>(options, false);
}

std::unique_ptr<protocol> make_openai_chat(const serve_options& options) {
  return std::make_unique<openai_protocol>(options, true);
}

} // namespace twill::bench
