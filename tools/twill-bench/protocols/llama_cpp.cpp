// llama_cpp: llama.cpp's own route /completion (as its tools/server/README.md describes it).
#include "tools/twill-bench/engine/json_scan.hpp"
#include "tools/twill-bench/protocols/backends.hpp"
#include "tools/twill-bench/protocols/body.hpp"

namespace twill::bench {
namespace {

namespace js = json_scan;

std::string_view finish_of(std::string_view payload) {
  const std::string_view type = js::string_body(js::member(payload, "stop_type"));
  if (type == "limit") return "length";
  return type == "eos" || type == "word" ? "stop" : type;
}

class llama_cpp_protocol final : public protocol {
public:
  explicit llama_cpp_protocol(const serve_options& options) : options_(options) {}

  wire transport() const override { return wire::http; }
  bool takes_ids() const override { return true; }
  std::string default_endpoint() const override { return "/completion"; }

  std::string request(const prompt& asked, std::size_t) const override {
    body_writer body;
    if (!asked.ids.empty())
      body.ids("prompt", asked.ids);
    else
      body.text("prompt", whole_text(asked));
    body.integer("n_predict", asked.output_tokens);
    body.boolean("stream", options_.stream);
    if (options_.n_turns > 1) body.boolean("return_tokens", true);
    return body.sampling(options_).finish();
  }

  update read_event(std::string_view payload) const override {
    update out;
    const std::string_view error = js::member(payload, "error");
    if (js::present(error)) {
      out.failed = true;
      out.error_json = error;
      return out;
    }
    out.text_json = js::member(payload, "content");
    out.malformed = out.text_json.empty();
    const bool last = js::member(payload, "stop") == "true";
    const bool has_text = !js::string_body(out.text_json).empty();
    const std::string_view ids = js::member(payload, "tokens");
    const auto n_ids = js::length(ids);
    out.ids_json = ids;
    if (n_ids > 0) out.tokens = static_cast<std::int32_t>(n_ids);
    out.content = has_text || n_ids > 0 || (!last && !out.malformed);
    if (last) read_end(payload, out);
    return out;
  }

  update read_whole(std::string_view body) const override {
    update out = read_event(body);
    if (out.failed || out.malformed) return out;
    out.content = true;
    out.tokens = -1;
    read_end(body, out);
    return out;
  }

private:
  static void read_end(std::string_view payload, update& out) {
    out.done = true;
    out.finish_reason = finish_of(payload);
    out.input_tokens = js::integer(js::member(payload, "tokens_evaluated"));
    out.output_tokens = js::integer(js::member(payload, "tokens_predicted"));
  }

  serve_options options_;
};

} // namespace

std::unique_ptr<protocol> make_llama_cpp(const serve_options& options) {
  return std::make_unique<llama_cpp_protocol>(options);
}

} // namespace twill::bench
