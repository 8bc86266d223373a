#include "net/protocol/chat.hpp"

#include "net/protocol/chat_fields.hpp"
#include "net/protocol/chat_reply.hpp"
#include "net/protocol/fields.hpp"
#include "net/protocol/sampling_fields.hpp"

namespace twill::net {

result<call> parse_chat(const value& body, const codec_context& with) {
  fields from(body);
  actors::request request;
  request.model = with.model.id;
  request.sampling = with.model.default_sampling;
  auto& sampling = request.sampling;
  sampling.max_tokens = with.limits.default_max_tokens > 0 ? with.limits.default_max_tokens : -1;
  read_sampling(from, sampling);
  read_token_limit(from, {"max_completion_tokens", "max_tokens"}, sampling);
  read_chat_logprobs(from, sampling);
  reply_options options;
  read_reply_options(from, options);
  reject_unsupported(from);
  check_sampling(from, sampling, with);
  actors::chat_prompt prompt;
  read_chat_prompt(from, prompt);
  if (!from.ok()) return fail(from.error());

  request.prompt = std::move(prompt);
  request.echo_prompt_ids = options.token_ids;
  options.identity = make_identity("chatcmpl-", with.model);
  options.logprobs = sampling.logprobs >= 0;
  options.choices_per_request = sampling.n;
  options.stop_token_ids = sampling.stop_token_ids;

  call made;
  made.stream = options.stream;
  made.requests.push_back(std::move(request));
  made.encoder = std::make_unique<chat_reply>(std::move(options), 1);
  return made;
}

} // namespace twill::net
