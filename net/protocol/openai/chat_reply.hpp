// chat_reply: writes chat.completion and chat.completion.chunk objects.
#pragma once

#include "net/protocol/openai/generation_reply.hpp"

namespace twill::net {

class chat_reply final : public generation_reply {
public:
  using generation_reply::generation_reply;

private:
  std::string_view stream_object() const override { return "chat.completion.chunk"; }
  std::string_view whole_object() const override { return "chat.completion"; }
  void add_choice(json_writer& json, choice& state, const choice& part, bool whole) override;
  void add_calls(json_writer& json, const choice& part, bool whole) const;
  void add_extras(json_writer& json, bool first) override;
};

} // namespace twill::net
