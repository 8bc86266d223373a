// responses_ws: the WebSocket mode of the Responses API. The client sends response.create and
// receives typed events.
//
// Every request has a `stream_id` of its own, here called its lane, so that several requests may
// share a socket.
#include <charconv>

#include "tools/twill-bench/engine/json_scan.hpp"
#include "tools/twill-bench/protocols/backends.hpp"
#include "tools/twill-bench/protocols/body.hpp"

namespace twill::bench {
namespace {

namespace js = json_scan;

constexpr std::string_view lane_prefix = "bench-";

std::string lane_of(std::size_t id) {
  return std::string(lane_prefix) + std::to_string(id);
}

class responses_ws_protocol final : public protocol {
public:
  explicit responses_ws_protocol(const serve_options& options) : options_(options) {}

  wire transport() const override { return wire::websocket; }
  bool takes_ids() const override { return false; }
  std::string default_endpoint() const override { return "/v1/responses"; }

  std::string request(const prompt& asked, std::size_t id) const override {
    body_writer body;
    body.text("type", "response.create").text("model", options_.model);
    body.text("input", whole_text(asked)).integer("max_output_tokens", asked.output_tokens);
    body.boolean("store", false);
    if (options_.connections > 0) body.text("stream_id", lane_of(id));
    return body.sampling(options_).finish();
  }

  update read_event(std::string_view payload) const override {
    update out;
    std::string_view type, response, error;
    for (js::members each(payload); each.next();) {
      if (each.key() == "type")
        type = js::string_body(each.value());
      else if (each.key() == "stream_id")
        out.owner = owner_of(each.value());
      else if (each.key() == "delta")
        out.text_json = each.value();
      else if (each.key() == "response")
        response = each.value();
      else if (each.key() == "error")
        error = each.value();
    }
    if (type == "response.output_text.delta") {
      out.content = true;
    } else if (type == "response.completed" || type == "response.incomplete") {
      read_end(response, type == "response.completed", out);
    } else if (type == "response.failed" || type == "error") {
      out.failed = true;
      out.error_json = type == "error" ? error : js::member(response, "error");
      if (out.error_json.empty()) out.error_json = payload;
    }
    if (!out.content) out.text_json = {}; // other kinds of events have a `delta`, too
    out.malformed = type.empty();
    return out;
  }

  update read_whole(std::string_view body) const override { return read_event(body); }

  std::string cancel(std::size_t id) const override {
    // Without lanes, a late event does not say which request it belongs to.
    if (options_.connections == 0) return {};
    return body_writer().text("type", "response.cancel").text("stream_id", lane_of(id)).finish();
  }

private:
  static std::optional<std::size_t> owner_of(std::string_view stream_id) {
    std::string_view lane = js::string_body(stream_id);
    if (lane.substr(0, lane_prefix.size()) != lane_prefix) return std::nullopt;
    lane.remove_prefix(lane_prefix.size());
    std::size_t id = 0;
    const auto end = std::from_chars(lane.data(), lane.data() + lane.size(), id).ptr;
    if (end != lane.data() + lane.size()) return std::nullopt;
    return id;
  }

  static void read_end(std::string_view response, bool completed, update& out) {
    out.done = true;
    const std::string_view usage = js::member(response, "usage");
    out.input_tokens = js::integer(js::member(usage, "input_tokens"));
    out.output_tokens = js::integer(js::member(usage, "output_tokens"));
    if (completed) {
      out.finish_reason = "stop";
      return;
    }
    const std::string_view reason =
        js::string_body(js::member(js::member(response, "incomplete_details"), "reason"));
    out.finish_reason = reason == "max_output_tokens" ? std::string_view("length") : reason;
  }

  serve_options options_;
};

} // namespace

std::unique_ptr<protocol> make_responses_ws(const serve_options& options) {
  return std::make_unique<responses_ws_protocol>(options);
}

} // namespace twill::bench
