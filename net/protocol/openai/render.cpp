#include "net/protocol/openai/render.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "net/protocol/openai/chat.hpp"
#include "net/protocol/openai/completions.hpp"
#include "net/protocol/output_json.hpp"

namespace twill::net {
namespace {

using ids = std::vector<std::int32_t>;

struct encode_with {
  const codec_context& context;

  actors::result<ids> operator()(const actors::text_prompt& text) const {
    return context.engine.tokenize(context.model.id, text, true);
  }
  actors::result<ids> operator()(const actors::chat_prompt& chat) const {
    return context.engine.tokenize_chat(context.model.id, chat);
  }
  actors::result<ids> operator()(const actors::token_prompt& given) const { return given; }
};

result<ids> encode(const actors::request& asked, const codec_context& context) {
  auto encoded = std::visit(encode_with{context}, asked.prompt);
  if (!encoded.ok()) return fail(from_engine(encoded.code(), encoded.detail()));
  auto read = std::move(encoded).value();
  if (read.empty())
    return fail(
        {actors::errc::empty_prompt, "`prompt` must have at least 1 token, got 0", "prompt"});
  const auto most = static_cast<std::size_t>(asked.truncate_prompt_tokens);
  if (most > 0 && read.size() > most)
    read.erase(read.begin(), read.end() - static_cast<std::ptrdiff_t>(most));
  return read;
}

result<nothing> add_rendered(json_writer& json, const actors::request& asked, const std::string& id,
                             const codec_context& context) {
  const auto encoded = encode(asked, context);
  if (!encoded.ok()) return fail(encoded.code());
  json.begin_object().field("request_id", id).field("model", context.model.id).key("token_ids");
  add_ids(json, std::span<const std::int32_t>(encoded.value()));
  json.end_object();
  return nothing{};
}

} // namespace

result<std::string> render_chat_body(const value& body, const codec_context& context) {
  const auto asked = read_chat(body, context);
  if (!asked.ok()) return fail(asked.code());
  std::string out;
  json_writer json(out);
  const auto added =
      add_rendered(json, asked.value().request, asked.value().options.identity.id, context);
  if (!added.ok()) return fail(added.code());
  return out;
}

result<std::string> render_completions_body(const value& body, const codec_context& context) {
  const auto asked = read_completions(body, context);
  if (!asked.ok()) return fail(asked.code());
  std::string out;
  json_writer json(out);
  json.begin_array();
  for (const auto& request : asked.value().requests) {
    const auto added = add_rendered(json, request, asked.value().options.identity.id, context);
    if (!added.ok()) return fail(added.code());
  }
  json.end_array();
  return out;
}

} // namespace twill::net
