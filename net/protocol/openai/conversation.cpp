#include "net/protocol/openai/conversation.hpp"

#include <utility>

#include "net/protocol/chat_fields.hpp"

namespace twill::net {

conversation::conversation(value_list so_far) : messages_(std::move(so_far)) {
  if (messages_.empty()) return;
  value last = std::move(messages_.back());
  messages_.pop_back();
  add(std::move(last));
}

void conversation::add(value message) {
  close();
  const auto* role = message.find("role");
  if (role == nullptr || *role != value("assistant"))
    return messages_.push_back(std::move(message));
  open_ = true;
  for (const auto& [key, member] : *message.as_object())
    if (key == "tool_calls" && member.as_list() != nullptr)
      calls_ = *member.as_list();
    else
      assistant_.emplace_back(key, member);
}

void conversation::add_call(value tool_call) {
  if (!open_) {
    open_ = true;
    assistant_ = {{"role", "assistant"}, {"content", nullptr}};
  }
  calls_.push_back(std::move(tool_call));
}

void conversation::close() {
  if (!open_) return;
  open_ = false;
  if (!calls_.empty()) assistant_.emplace_back("tool_calls", std::move(calls_));
  messages_.push_back(std::move(assistant_));
  calls_.clear();
  assistant_.clear();
}

value_list conversation::take() {
  close();
  name_tool_results(messages_);
  return std::move(messages_);
}

} // namespace twill::net
