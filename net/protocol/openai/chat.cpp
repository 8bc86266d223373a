#include "net/protocol/openai/chat.hpp"

#include "net/protocol/chat_fields.hpp"
#include "net/protocol/generation_fields.hpp"
#include "net/protocol/json/fields.hpp"
#include "net/protocol/openai/chat_reply.hpp"
#include "net/protocol/output_form.hpp"
#include "net/protocol/sampling_fields.hpp"
#include "net/protocol/stored_request.hpp"
#include "net/stored/stored_api.hpp"

namespace twill::net {

field_rows chat_rows() {
  field_rows rows{model_row};
  add_chat_prompt_rows(rows);
  add_sampling_rows(rows);
  add_limit_rows(rows, {"max_completion_tokens", "max_tokens"});
  add_chat_logprob_rows(rows);
  add_prompt_option_rows(rows);
  add_form_rows(rows);
  add_reply_option_rows(rows);
  add_queue_rows(rows);
  rows.push_back({"echo", schema::any, "false or absent: only completions repeat their prompt",
                  field_use::refused});
  add_foreign_rows(rows);
  return rows;
}

result<asked_chat> read_chat(const value& body, const codec_context& context) {
  fields from(body);
  asked_chat read;
  auto& request = read.request;
  auto& sampling = request.sampling;
  auto& options = read.options;
  set_defaults(context, request);
  read_generation(from, context, {"max_completion_tokens", "max_tokens"}, 1, request);
  read_chat_logprobs(from, context, sampling);
  read_reply_options(from, options);
  bool echo = false;
  from.read("echo", echo);
  if (echo)
    from.reject("echo", "false or absent: only completions repeat their prompt", value(true));
  check_sampling(from, sampling, context);
  actors::chat_prompt prompt;
  const auto tools = read_chat_prompt(from, prompt);
  if (!from.ok()) return fail(from.error());

  options.identity = make_identity(id_prefix_of(stored_api::chat), context);
  prompt.now_unix_s = options.identity.created_unix_s;
  request.prompt = std::move(prompt);
  request.tools = tools.choice;
  request.parse_output = true;
  options.prompt_logprobs = request.prompt_logprobs >= 0;
  options.parallel_calls = tools.choice.parallel;
  options.legacy_calls = tools.legacy;
  request.echo_prompt_ids = options.token_ids;
  options.logprobs = sampling.logprobs >= 0;
  options.choices_per_request = sampling.n;
  options.stop_token_ids = sampling.stop_token_ids;
  return read;
}

result<call> parse_chat(const value& body, const codec_context& context) {
  auto read = read_chat(body, context);
  if (!read.ok()) return fail(read.code());
  auto& [request, options] = read.value();
  call generation;
  generation.stream = options.stream;
  if (options.store)
    generation.stored = head_of(options.identity, request.sampling, body, context.tenant);
  generation.requests.push_back(std::move(request));
  generation.encoder = std::make_unique<chat_reply>(std::move(options), 1);
  return generation;
}

} // namespace twill::net
