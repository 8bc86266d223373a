// tgi: Text Generation Inference's own routes, /generate_stream and /generate (as its OpenAPI
// document describes them).
//
// An event brings one token. The last event also brings the whole text and the member `details`.
// There is no ignore_eos, and a temperature of 0 is requested by leaving the field out.
#include "tools/twill-bench/engine/json_scan.hpp"
#include "tools/twill-bench/protocols/backends.hpp"
#include "tools/twill-bench/protocols/body.hpp"

namespace twill::bench {
namespace {

namespace js = json_scan;

std::string_view finish_of_details(std::string_view details) {
  const std::string_view reason = js::string_body(js::member(details, "finish_reason"));
  return reason == "eos_token" || reason == "stop_sequence" ? "stop" : reason;
}

class tgi_protocol final : public protocol {
public:
  explicit tgi_protocol(const serve_options& options) : options_(options) {}

  wire transport() const override { return wire::http; }
  bool takes_ids() const override { return false; }
  std::string default_endpoint() const override {
    return options_.stream ? "/generate_stream" : "/generate";
  }

  std::string request(const prompt& asked, std::size_t) const override {
    const bool greedy = !options_.temperature || *options_.temperature <= 0;
    body_writer parameters;
    parameters.integer("max_new_tokens", asked.output_tokens);
    parameters.boolean("details", true).boolean("do_sample", !greedy);
    if (!greedy) parameters.number("temperature", *options_.temperature);
    if (options_.top_p) parameters.number("top_p", *options_.top_p);
    if (options_.top_k) parameters.integer("top_k", *options_.top_k);
    body_writer body;
    body.text("inputs", whole_text(asked)).raw("parameters", parameters.finish());
    return body.merge(options_.extra_body).finish();
  }

  update read_event(std::string_view payload) const override {
    update out;
    if (read_error(payload, out)) return out;
    const std::string_view token = js::member(payload, "token");
    out.malformed = !js::present(token);
    out.content = !out.malformed;
    out.tokens = 1;
    out.text_json = js::member(token, "text");
    const std::string_view details = js::member(payload, "details");
    if (js::present(details)) read_end(details, out);
    return out;
  }

  update read_whole(std::string_view body) const override {
    update out;
    if (read_error(body, out)) return out;
    out.text_json = js::member(body, "generated_text");
    out.malformed = out.text_json.empty();
    out.content = !out.malformed;
    read_end(js::member(body, "details"), out);
    return out;
  }

private:
  static bool read_error(std::string_view payload, update& out) {
    out.failed = js::present(js::member(payload, "error"));
    if (out.failed) out.error_json = payload;
    return out.failed;
  }

  static void read_end(std::string_view details, update& out) {
    out.done = true;
    out.finish_reason = finish_of_details(details);
    out.output_tokens = js::integer(js::member(details, "generated_tokens"));
    out.input_tokens = js::integer(js::member(details, "input_length"));
  }

  serve_options options_;
};

} // namespace

std::unique_ptr<protocol> make_tgi(const serve_options& options) {
  return std::make_unique<tgi_protocol>(options);
}

} // namespace twill::bench
