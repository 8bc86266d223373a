#include "net/protocol/openai/completions.hpp"

#include "net/protocol/chat_fields.hpp"
#include "net/protocol/generation_fields.hpp"
#include "net/protocol/json/fields.hpp"
#include "net/protocol/openai/completions_reply.hpp"
#include "net/protocol/output_form.hpp"
#include "net/protocol/prompt_fields.hpp"
#include "net/protocol/sampling_fields.hpp"
#include "net/protocol/stored_request.hpp"
#include "net/stored/stored_api.hpp"

namespace twill::net {
namespace {

result<std::string> echo_text(const any_prompt& given, const codec_context& context) {
  if (const auto* text = std::get_if<actors::text_prompt>(&given)) return text->text;
  auto text = context.engine.detokenize(context.model.id, std::get<actors::token_prompt>(given));
  if (!text.ok()) return fail(from_engine(text.code(), text.detail()));
  return std::move(text).value();
}

} // namespace

field_rows completions_rows() {
  constexpr std::string_view chat_only = "absent: tools belong to chat";
  field_rows rows{
      model_row,
      {"prompt", R"("type":["string","array"])",
       "A text, token ids, or a list of either: a choice for each.", field_use::honoured, true},
      {"echo", schema::boolean, "The prompt stands before the output."},
      {"add_special_tokens", schema::boolean,
       "The model's first token goes before the prompt (the default)."},
      {"logprobs", R"("type":"integer","minimum":-1)",
       "The log-probability of each token, with so many alternatives; -1 for all."},
      {"tools", schema::any, chat_only, field_use::refused},
      {"tool_choice", schema::any, chat_only, field_use::refused},
      {"functions", schema::any, chat_only, field_use::refused},
      {"chat_template", schema::any, "absent: templates belong to chat", field_use::refused},
      no_continuation_row};
  add_sampling_rows(rows);
  add_limit_rows(rows, {"max_tokens", "max_completion_tokens"});
  add_prompt_option_rows(rows);
  add_form_rows(rows);
  add_reply_option_rows(rows);
  add_queue_rows(rows);
  add_foreign_rows(rows);
  return rows;
}

result<asked_completions> read_completions(const value& body, const codec_context& context) {
  fields from(body);
  asked_completions read;
  actors::request asked;
  auto& sampling = asked.sampling;
  set_defaults(context, asked);
  sampling.max_tokens = 16; // the default of OpenAI's API
  read_generation(from, context, {"max_tokens", "max_completion_tokens"}, 0, asked);
  read_alternatives(from, "logprobs", context, sampling.logprobs);
  bool echo = false;
  from.read("echo", echo);
  bool add_special = true;
  from.read("add_special_tokens", add_special);
  auto& options = read.options;
  read_reply_options(from, options);
  check_sampling(from, sampling, context);
  if (echo && asked.truncate_prompt_tokens > 0)
    from.reject("truncate_prompt_tokens", "absent when `echo` is true",
                value(std::int64_t{asked.truncate_prompt_tokens}));
  for (const auto* name : {"tools", "tool_choice", "functions"})
    if (const auto* v = from.find(name); v != nullptr && *v != value("none"))
      from.reject(name, "absent: tools belong to chat", *v);
  reject_continuation(from);
  if (const auto* v = from.find("chat_template"); v != nullptr && *v != value(""))
    from.reject("chat_template", "absent: templates belong to chat", *v);
  auto prompts =
      read_prompts(from, "prompt", add_special, context.model.vocab_size, max_prompts_per_call);
  if (options.store && prompts.size() > 1)
    from.reject("store", "false where `prompt` is a list of several prompts", value(true));
  if (!from.ok()) return fail(from.error());

  if (echo)
    for (const auto& given : prompts) {
      auto text = echo_text(given, context);
      if (!text.ok()) return fail(text.code());
      read.echoes.push_back(std::move(text).value());
    }
  options.identity = make_identity(id_prefix_of(stored_api::completions), context);
  options.logprobs = sampling.logprobs >= 0;
  options.prompt_logprobs = asked.prompt_logprobs >= 0;
  if (echo && sampling.logprobs > asked.prompt_logprobs) asked.prompt_logprobs = sampling.logprobs;
  asked.echo_prompt_ids = options.token_ids;
  options.choices_per_request = sampling.n;
  options.stop_token_ids = sampling.stop_token_ids;
  for (auto& given : prompts) {
    read.requests.push_back(asked);
    read.requests.back().prompt = std::move(given);
  }
  return read;
}

result<call> parse_completions(const value& body, const codec_context& context) {
  auto read = read_completions(body, context);
  if (!read.ok()) return fail(read.code());
  auto& [requests, echoes, options] = read.value();
  call generation;
  generation.stream = options.stream;
  if (options.store)
    generation.stored = head_of(options.identity, requests.front().sampling, body, context.tenant,
                                {{"echo", echoes.empty() ? value() : value(echoes.front())}});
  generation.encoder =
      std::make_unique<completions_reply>(std::move(options), requests.size(), std::move(echoes));
  generation.requests = std::move(requests);
  return generation;
}

} // namespace twill::net
