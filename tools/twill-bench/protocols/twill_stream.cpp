// twill_stream: twill's /v1/stream (net/STREAM.md). The client sends submit frames and receives
// token frames and a finishing frame.
#include <charconv>

#include "tools/twill-bench/engine/json_scan.hpp"
#include "tools/twill-bench/protocols/backends.hpp"
#include "tools/twill-bench/protocols/body.hpp"

namespace twill::bench {
namespace {

namespace js = json_scan;

class twill_stream_protocol final : public protocol {
public:
  explicit twill_stream_protocol(const serve_options& options) : options_(options) {}

  wire transport() const override { return wire::websocket; }
  bool takes_ids() const override { return true; }
  std::string default_endpoint() const override { return "/v1/stream"; }

  std::string request(const prompt& asked, std::size_t id) const override {
    body_writer body;
    body.text("op", "submit").text("id", std::to_string(id));
    if (!options_.model.empty()) body.text("model", options_.model);
    if (!asked.ids.empty())
      body.ids("tokens", asked.ids);
    else
      body.text("prompt", whole_text(asked));
    body.integer("max_tokens", asked.output_tokens);
    return body.sampling(options_).finish();
  }

  update read_event(std::string_view payload) const override {
    update out;
    std::string_view id;
    for (js::members each(payload); each.next();) {
      if (each.key() == "id")
        id = each.value();
      else if (each.key() == "tokens")
        out.ids_json = each.value();
      else if (each.key() == "text")
        out.text_json = each.value();
      else if (each.key() == "finish")
        out.finish_reason = js::string_body(each.value());
      else if (each.key() == "usage")
        read_usage(each.value(), out);
      else if (each.key() == "done")
        out.done = each.value() == "true";
      else if (each.key() == "error")
        out.error_json = each.value();
    }
    out.owner = owner_of(id);
    out.failed = js::present(out.error_json);
    if (out.failed) return out;
    if (!out.ids_json.empty()) out.tokens = static_cast<std::int32_t>(js::length(out.ids_json));
    out.content = out.tokens > 0 || !js::string_body(out.text_json).empty();
    out.malformed = id.empty();
    return out;
  }

  update read_whole(std::string_view body) const override { return read_event(body); }

  std::string cancel(std::size_t id) const override {
    return body_writer().text("op", "cancel").text("id", std::to_string(id)).finish();
  }

private:
  static void read_usage(std::string_view usage, update& out) {
    out.input_tokens = js::integer(js::member(usage, "prompt_tokens"));
    out.output_tokens = js::integer(js::member(usage, "completion_tokens"));
  }

  static std::optional<std::size_t> owner_of(std::string_view id) {
    const std::string_view digits = js::string_body(id);
    std::size_t owner = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), owner);
    if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
    return owner;
  }

  serve_options options_;
};

} // namespace

std::unique_ptr<protocol> make_twill_stream(const serve_options& options) {
  return std::make_unique<twill_stream_protocol>(options);
}

} // namespace twill::bench
