#include "net/protocol/ollama/generate.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "net/protocol/chat_fields.hpp"
#include "net/protocol/json/fields.hpp"
#include "net/protocol/ollama/request.hpp"

namespace twill::net {
namespace {

struct generate_fields {
  std::string prompt;
  std::string system;
  std::vector<std::int32_t> before; ///< token ids of the field `context`, which precede the prompt
  bool raw = false;
};

void reject_unless_empty(fields& from, std::string_view name, std::string_view rule) {
  const auto* given = from.find(name);
  if (given == nullptr || *given == value("") || *given == value(value_list{})) return;
  from.reject(name, rule, *given);
}

generate_fields read_generate_fields(fields& from, const codec_context& context) {
  generate_fields read;
  from.read("prompt", read.prompt);
  from.read("system", read.system);
  from.read("raw", read.raw);
  from.read("context", read.before);
  reject_unless_empty(from, "suffix",
                      "absent: this server fills no gaps in texts; ask a chat for what is between");
  reject_unless_empty(from, "template", "absent, as this server takes no templates from requests");
  reject_unless_empty(from, "images", "absent or an empty list, as no model here reads images");
  if (read.raw && !read.before.empty())
    from.reject("context", "absent where `raw` is true: put its text into the prompt",
                value("a list of token ids"));
  if (read.system.empty()) return read;
  if (read.raw)
    from.reject("system", "absent where `raw` is true: write it into the prompt",
                value(read.system));
  else if (!context.model.has_chat_template)
    from.reject("system", "absent: the model has no chat template that could write it",
                value(read.system));
  return read;
}

} // namespace

field_rows ollama_generate_rows() {
  field_rows rows{
      {"prompt", schema::string,
       "What the user says. None: the model is loaded, and nothing else."},
      {"system", schema::string, "The system message."},
      {"raw", schema::boolean, "The prompt is read as it is, without the template."},
      {"context", schema::token_ids, "The `context` of an earlier answer, which this one follows."},
      {"suffix", schema::any, "absent: this server fills no gaps in texts", field_use::refused},
      {"template", schema::any, "absent, as this server takes no templates from requests",
       field_use::refused},
      {"images", schema::any, "absent or an empty list, as no model here reads images",
       field_use::refused}};
  add_ollama_rows(rows);
  return rows;
}

result<call> parse_ollama_generate(const value& body, const codec_context& context) {
  fields from(body);
  auto asked = read_ollama_call(from, context);
  auto read = read_generate_fields(from, context);
  if (!from.ok()) return fail(from.error());
  if (read.prompt.empty()) return load_or_unload(std::move(asked));

  auto& request = asked.request;
  // If the prompt is too long, its oldest tokens are cut, since it has no turns to drop.
  if (asked.room > 0)
    request.truncate_prompt_tokens = std::max(context.model.max_model_len - asked.room, 1);
  if (read.raw || !context.model.has_chat_template) {
    request.prompt = actors::text_prompt{std::move(read.prompt), true, std::move(read.before)};
  } else {
    actors::chat_prompt prompt;
    value_list messages;
    if (!read.system.empty()) messages.push_back(make_message("system", std::move(read.system)));
    messages.push_back(make_message("user", std::move(read.prompt)));
    prompt.messages = std::move(messages);
    prompt.template_arguments = std::move(asked.template_arguments);
    prompt.before = std::move(read.before);
    request.prompt = std::move(prompt);
    request.parse_output = true;
  }
  asked.reply.context = !read.raw;
  request.echo_prompt_ids = asked.reply.context;
  call generation;
  generation.stream = asked.reply.stream;
  generation.requests.push_back(std::move(request));
  generation.encoder = std::make_unique<ollama_reply>(std::move(asked.reply));
  return generation;
}

} // namespace twill::net
