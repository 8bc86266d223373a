#include "net/protocol/ollama/messages.hpp"

#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/protocol/chat_fields.hpp"
#include "net/protocol/json/members.hpp"

namespace twill::net {
namespace {

/// The tool calls of the last message that has any, except calls that have a result already.
class open_calls {
public:
  void forget() {
    ids_.clear();
    taken_.clear();
    by_name_.clear();
    next_ = 0;
  }

  void add(std::string id, const std::string& name) {
    by_name_[name].push_back(ids_.size());
    ids_.push_back(std::move(id));
    taken_.push_back(false);
  }

  /// Returns the id of the call that a result belongs to; empty if there is none.
  std::string answer(const std::string& name) {
    if (const auto named = by_name_.find(name); named != by_name_.end()) {
      auto& left = named->second;
      while (!left.empty() && taken_[left.front()])
        left.pop_front();
      if (!left.empty()) return take(left.front());
    }
    if (!name.empty()) return {};
    while (next_ < ids_.size() && taken_[next_])
      ++next_;
    return next_ < ids_.size() ? take(next_) : std::string();
  }

private:
  std::string take(std::size_t i) {
    taken_[i] = true;
    return ids_[i];
  }

  std::vector<std::string> ids_;
  std::vector<bool> taken_;
  std::map<std::string, std::deque<std::size_t>> by_name_;
  std::size_t next_ = 0;
};

/// Returns the tool calls of a message as the client wrote them, each with an id.
value with_ids(const value& calls, std::size_t message, open_calls& open) {
  value_list read = *calls.as_list();
  open.forget();
  for (std::size_t i = 0; i < read.size(); ++i) {
    const auto* function = member(read[i], "function");
    if (function == nullptr) continue; // read_chat_message() reports the error
    auto id = text_of(member(read[i], "id"));
    if (id.empty()) id = "call_" + std::to_string(message) + "_" + std::to_string(i);
    open.add(id, text_of(member(*function, "name")));
    read[i] = value_object{{"id", std::move(id)}, {"function", *function}};
  }
  return read;
}

/// Converts the members of a message from Ollama's form to the Chat API's form.
value in_chat_form(fields& from, const std::string& name, const value& message, std::size_t index,
                   open_calls& open) {
  if (message.as_object() == nullptr) return message;
  value_object read;
  bool content = false;
  for (const auto& [key, v] : *message.as_object()) {
    if (v.is_null()) continue;
    if (key == "images") {
      if (v.as_list() == nullptr || !v.as_list()->empty())
        from.reject(name + ".images", "absent or an empty list, as no model here reads images", v);
    } else if (key == "thinking") {
      if (v.as_string() == nullptr) from.reject(name + ".thinking", "a string", v);
      if (v != value("")) read.emplace_back("reasoning_content", v);
    } else if (key == "tool_name") {
      if (v.as_string() == nullptr) from.reject(name + ".tool_name", "a string", v);
      read.emplace_back("name", v);
    } else if (key == "tool_calls" && v.as_list() != nullptr) {
      if (!v.as_list()->empty()) read.emplace_back(key, with_ids(v, index, open));
    } else {
      content = content || key == "content";
      read.emplace_back(key, v);
    }
  }
  if (!content) read.emplace_back("content", "");
  const auto* role = message.find("role");
  if (role != nullptr && *role == value("tool") && member(message, "tool_call_id") == nullptr)
    if (auto id = open.answer(text_of(member(message, "tool_name"))); !id.empty())
      read.emplace_back("tool_call_id", std::move(id));
  return read;
}

} // namespace

value_list read_ollama_messages(fields& from) {
  value_list read;
  const auto* given = from.find("messages");
  if (given == nullptr || !from.ok()) return read;
  const auto* list = given->as_list();
  if (list == nullptr) {
    from.reject("messages", "a list of messages", *given);
    return read;
  }
  open_calls open;
  read.reserve(list->size());
  for (std::size_t i = 0; i < list->size() && from.ok(); ++i) {
    const auto name = "messages[" + std::to_string(i) + "]";
    const auto message = in_chat_form(from, name, (*list)[i], i, open);
    read.push_back(read_chat_message(from, name, message));
  }
  if (from.ok()) name_tool_results(read);
  return read;
}

} // namespace twill::net
