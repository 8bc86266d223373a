#include "net/protocol/openai/stored_generation.hpp"

#include <utility>

#include "net/protocol/openai/chat.hpp"
#include "net/protocol/openai/chat_reply.hpp"
#include "net/protocol/openai/completions.hpp"
#include "net/protocol/openai/completions_reply.hpp"
#include "net/protocol/stored_context.hpp"
#include "net/protocol/stored_request.hpp"
#include "net/stored/stored_api.hpp"

namespace twill::net {
namespace {

void set_reading(reply_options& options, const stored_head& head, bool stream, std::int64_t after) {
  options.identity = identity_of(head);
  options.stream = stream;
  options.after = after;
}

/// Removes `echo` from the body, so that the prompt is not detokenized again: the model may have
/// been replaced meanwhile. The text of an echoed prompt is already stored, in stored_head::asked.
value without_echo(const value& body) {
  value_object copy;
  for (const auto& [name, v] : *body.as_object())
    if (name != "echo") copy.emplace_back(name, v);
  return copy;
}

} // namespace

result<std::unique_ptr<reply_encoder>> stored_generation_reply(const stored_head& head,
                                                               const actors::engine_port& engine,
                                                               bool stream, std::int64_t after) {
  const auto body = body_of(head);
  if (!body.ok()) return fail(body.code());
  const stored_context reading(head, engine);
  if (api_of(head.id) == stored_api::chat) {
    auto read = read_chat(*body.value(), reading.get());
    if (!read.ok()) return fail(read.code());
    set_reading(read.value().options, head, stream, after);
    return std::unique_ptr<reply_encoder>(
        std::make_unique<chat_reply>(std::move(read.value().options), 1));
  }
  auto read = read_completions(without_echo(*body.value()), reading.get());
  if (!read.ok()) return fail(read.code());
  auto& all = read.value();
  if (const auto* echo = head.asked.find("echo"); echo != nullptr && echo->as_string() != nullptr)
    all.echoes = {*echo->as_string()};
  set_reading(all.options, head, stream, after);
  return std::unique_ptr<reply_encoder>(std::make_unique<completions_reply>(
      std::move(all.options), all.requests.size(), std::move(all.echoes)));
}

result<actors::request> ask_generation_again(const stored_head& head,
                                             const codec_context& context) {
  const auto body = body_of(head);
  if (!body.ok()) return fail(body.code());
  actors::request asked;
  if (api_of(head.id) == stored_api::chat) {
    auto read = read_chat(*body.value(), context);
    if (!read.ok()) return fail(read.code());
    asked = std::move(read.value().request);
    std::get<actors::chat_prompt>(asked.prompt).now_unix_s = head.created_unix_s;
  } else {
    auto read = read_completions(*body.value(), context);
    if (!read.ok()) return fail(read.code());
    asked = std::move(read.value().requests.front());
  }
  restore_sampling(head.asked, asked.sampling);
  return asked;
}

} // namespace twill::net
