// openai: OpenAI's /v1/completions and /v1/chat/completions, as vLLM serves them.
#include "tools/twill-bench/engine/json_scan.hpp"
#include "tools/twill-bench/protocols/backends.hpp"
#include "tools/twill-bench/protocols/body.hpp"

namespace twill::bench {
namespace {

namespace js = json_scan;

/// The contents of a choice. Completions have the text in the choice itself, chat has it in the
/// choice's `delta` or `message`.
struct choice_text {
  std::string_view text; ///< raw JSON, may be null or absent
  std::string_view ids;  ///< raw JSON, may be null or absent
  std::string_view finish;
  bool opens = false; ///< the event only names the role
  bool extra = false; ///< reasoning or a tool call: output that is not in `text`
};

void read_delta(std::string_view delta, choice_text& out) {
  bool role = false;
  for (js::members each(delta); each.next();) {
    if (each.key() == "content")
      out.text = each.value();
    else if (each.key() == "role")
      role = js::present(each.value());
    else if (each.key() == "reasoning_content" || each.key() == "reasoning")
      out.extra |= !js::string_body(each.value()).empty();
    else if (each.key() == "tool_calls")
      out.extra |= js::present(each.value());
  }
  out.opens = role && js::string_body(out.text).empty();
}

choice_text choice_text_of(std::string_view choice, bool chat) {
  choice_text out;
  for (js::members each(choice); each.next();) {
    if (each.key() == "finish_reason")
      out.finish = js::string_body(each.value());
    else if (each.key() == "token_ids")
      out.ids = each.value();
    else if (chat ? each.key() == "delta" || each.key() == "message" : each.key() == "text") {
      if (chat)
        read_delta(each.value(), out);
      else
        out.text = each.value();
    }
  }
  return out;
}

void read_usage(std::string_view usage, update& out) {
  if (!js::present(usage)) return;
  out.input_tokens = js::integer(js::member(usage, "prompt_tokens"));
  out.output_tokens = js::integer(js::member(usage, "completion_tokens"));
}

std::string message(const char* role, const std::string& text) {
  return std::string("{\"role\":\"") + role + "\",\"content\":" + quote_json(text) + "}";
}

std::string messages(const prompt& asked) {
  std::string out = "[";
  for (const spoken_turn& turn : asked.earlier)
    out += message("user", turn.asked) + "," + message("assistant", turn.answered) + ",";
  return out + message("user", asked.text) + "]";
}

class openai_protocol final : public protocol {
public:
  openai_protocol(const serve_options& options, bool chat) : options_(options), chat_(chat) {}

  wire transport() const override { return wire::http; }
  bool takes_ids() const override { return !chat_; }
  std::string default_endpoint() const override {
    return chat_ ? "/v1/chat/completions" : "/v1/completions";
  }

  std::string request(const prompt& asked, std::size_t) const override {
    body_writer body;
    body.text("model", options_.model);
    if (chat_)
      body.raw("messages", messages(asked));
    else if (!asked.ids.empty())
      body.ids("prompt", asked.ids);
    else
      body.text("prompt", whole_text(asked));
    body.integer("max_tokens", asked.output_tokens);
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
    const std::string_view choice = read_common(payload, out);
    if (choice.empty()) return out; // the event has an error or the usage
    const choice_text now = choice_text_of(choice, chat_);
    out.ids_json = js::present(now.ids) ? now.ids : std::string_view();
    if (js::present(now.ids)) out.tokens = static_cast<std::int32_t>(js::length(now.ids));
    out.finish_reason = now.finish;
    out.text_json = now.text;
    // An empty text without a finish reason is a token that has not yielded a character yet (or a
    // special token), so it counts as content. The opening event with the role, and a closing event
    // without output, do not count.
    const bool has_text = !js::string_body(now.text).empty();
    const bool empty_token = js::present(now.text) && !now.opens && out.finish_reason.empty();
    out.content = has_text || now.extra || out.tokens > 0 || (out.tokens < 0 && empty_token);
    return out;
  }

  update read_whole(std::string_view body) const override {
    update out;
    const std::string_view choice = read_common(body, out);
    if (out.failed || out.malformed) return out;
    out.done = true;
    out.content = !choice.empty();
    out.malformed = choice.empty();
    const choice_text all = choice_text_of(choice, chat_);
    out.text_json = all.text;
    out.ids_json = all.ids;
    out.finish_reason = all.finish;
    return out;
  }

private:
  /// Reads usage and errors into `out`. Returns the first choice; empty when there is none.
  static std::string_view read_common(std::string_view payload, update& out) {
    std::string_view choices, usage;
    for (js::members each(payload); each.next();) {
      if (each.key() == "choices")
        choices = each.value();
      else if (each.key() == "usage")
        usage = each.value();
      else if (each.key() == "error")
        out.error_json = each.value();
    }
    out.failed = js::present(out.error_json);
    out.malformed = !out.failed && choices.empty();
    if (out.failed || out.malformed) return {};
    read_usage(usage, out);
    return js::element(choices, 0);
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
