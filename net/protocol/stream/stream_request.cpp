#include "net/protocol/stream/stream_request.hpp"

#include <utility>

#include "net/protocol/chat_fields.hpp"
#include "net/protocol/generation_fields.hpp"
#include "net/protocol/json/json_writer.hpp"
#include "net/protocol/sampling_fields.hpp"
#include "net/protocol/stored_context.hpp"
#include "net/protocol/stored_request.hpp"
#include "net/stored/stored_api.hpp"

namespace twill::net {
namespace {

constexpr std::size_t max_id_bytes = 128;

void read_prompt(fields& from, std::int64_t now_unix_s, actors::request& to) {
  int n_given = 0;
  if (from.find("prompt") != nullptr) {
    ++n_given;
    actors::text_prompt text;
    from.read("prompt", text.text);
    from.read("add_special_tokens", text.add_special);
    to.prompt = std::move(text);
  }
  if (from.find("tokens") != nullptr) {
    ++n_given;
    actors::token_prompt ids;
    from.read("tokens", ids);
    to.prompt = std::move(ids);
  }
  if (from.find("messages") != nullptr) {
    ++n_given;
    actors::chat_prompt chat;
    const auto tools = read_chat_prompt(from, chat);
    chat.now_unix_s = now_unix_s;
    to.tools = tools.choice;
    // Without tools, the output stays one text that includes reasoning, unless the client asks for
    // parts.
    to.parse_output = !chat.tools.is_null();
    from.read("parse_output", to.parse_output);
    to.prompt = std::move(chat);
  } else {
    reject_continuation(from);
    if (const auto* v = from.find("chat_template"); v != nullptr && *v != value(""))
      from.reject("chat_template", "absent without `messages`", *v);
  }
  if (n_given != 1)
    from.reject({errc::invalid_field,
                 "exactly one of `prompt`, `tokens`, `messages` must be given, got " +
                     std::to_string(n_given),
                 "prompt"});
}

} // namespace

std::string read_stream_id(fields& from) {
  const auto* id = from.find("id");
  if (id == nullptr) {
    from.require("id");
    return {};
  }
  const bool valid = id->as_int() != nullptr ||
                     (id->as_string() != nullptr && id->as_string()->size() <= max_id_bytes);
  if (!valid) {
    from.reject("id", "an integer or a string of at most 128 bytes", *id);
    return {};
  }
  std::string json;
  json_writer(json).add(*id);
  return json;
}

result<asked_stream> read_stream_request(const value& message, const codec_context& context) {
  fields from(message);
  asked_stream read;
  auto& [request, identity, form] = read;
  auto& sampling = request.sampling;
  set_defaults(context, request);
  read_generation(from, context, {"max_tokens"}, 0, request);
  read_alternatives(from, "logprobs", context, sampling.logprobs);
  check_sampling(from, sampling, context);
  identity = make_identity(id_prefix_of(stored_api::stream), context);
  read_prompt(from, identity.created_unix_s, request);
  from.read("return_tokens", form.token_ids);
  from.read("return_text", form.text);
  from.read("store", form.store);
  if (!from.ok()) return fail(from.error());
  form.n = sampling.n;
  form.logprobs = sampling.logprobs >= 0;
  form.parallel_calls = request.tools.parallel;
  form.stop_token_ids = sampling.stop_token_ids;
  return read;
}

result<stream_form> stored_stream_form(const stored_head& head, const actors::engine_port& engine) {
  const auto body = body_of(head);
  if (!body.ok()) return fail(body.code());
  const stored_context reading(head, engine);
  auto read = read_stream_request(*body.value(), reading.get());
  if (!read.ok()) return fail(read.code());
  return std::move(read.value().form);
}

result<actors::request> ask_stream_again(const stored_head& head, const codec_context& context) {
  const auto body = body_of(head);
  if (!body.ok()) return fail(body.code());
  auto read = read_stream_request(*body.value(), context);
  if (!read.ok()) return fail(read.code());
  auto& asked = read.value().request;
  if (auto* chat = std::get_if<actors::chat_prompt>(&asked.prompt))
    chat->now_unix_s = head.created_unix_s;
  restore_sampling(head.asked, asked.sampling);
  return std::move(asked);
}

} // namespace twill::net
