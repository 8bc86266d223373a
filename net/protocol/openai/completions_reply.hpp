// completions_reply: writes text_completion objects, streamed or whole.
#pragma once

#include "net/protocol/openai/generation_reply.hpp"

namespace twill::net {

class completions_reply final : public generation_reply {
public:
  /// `echoes` are the prompts' texts, which precede the output; empty if they are not wanted.
  completions_reply(reply_options options, std::size_t n_requests, std::vector<std::string> echoes)
      : generation_reply(std::move(options), n_requests), echoes_(std::move(echoes)) {}

private:
  std::string_view stream_object() const override { return "text_completion"; }
  std::string_view whole_object() const override { return "text_completion"; }
  void add_choice(json_writer& json, choice& state, const choice& part, bool whole) override;
  void add_extras(json_writer&, bool) override {}
  void add_logprobs(json_writer& json, choice& state, const choice& part, bool first) const;

  std::vector<std::string> echoes_;
};

} // namespace twill::net
