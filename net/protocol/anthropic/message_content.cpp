#include "net/protocol/anthropic/message_content.hpp"

#include <string>
#include <string_view>
#include <utility>

#include "net/protocol/chat_fields.hpp"
#include "net/protocol/json/members.hpp"

namespace twill::net {
namespace {

constexpr std::string_view blank = " \t\r\n";

/// The content of consecutive messages of one role, merged.
struct message_run {
  std::string role; ///< empty: no message has been read yet
  bool has_text = false;
  std::string text;
  std::string reasoning;
  value_list calls;
  value_list results;
};

void add_line(std::string& to, std::string_view line, bool first) {
  if (!first) to += '\n';
  to += line;
}

class message_reader {
public:
  explicit message_reader(fields& from) : from_(from) {}

  void system(const value& given) {
    begin("system");
    read_blocks("system", given);
  }

  void message(const std::string& at, const value& given) {
    if (given.as_object() == nullptr) return from_.reject(at, "an object", given);
    const auto role = text_of(given.find("role"));
    if (role != "user" && role != "assistant" && role != "system")
      return reject(at + ".role", R"("user", "assistant" or "system")", given.find("role"));
    begin(role);
    const auto* content = member(given, "content");
    if (content == nullptr) return reject(at + ".content", "a string or a list of blocks", nullptr);
    read_blocks(at + ".content", *content);
  }

  /// Ends reading. `at` is the path of the last message's content, for error messages.
  void end(const std::string& at, actors::chat_prompt& to) {
    if (from_.ok() && run_.role == "assistant") end_with_answer(at, to);
    close();
    if (!from_.ok()) return;
    name_tool_results(messages_);
    to.messages = std::move(messages_);
  }

private:
  void reject(const std::string& name, std::string_view rule, const value* given) {
    from_.reject(name, rule, given == nullptr ? value() : *given);
  }

  void begin(const std::string& role) {
    if (role == run_.role) return;
    close();
    run_.role = role;
  }

  void close() {
    if (run_.role.empty()) return;
    for (auto& result : run_.results)
      messages_.push_back(std::move(result));
    // Messages that contain only tool results need no message besides the results.
    if (run_.results.empty() || !run_.text.empty()) {
      const bool has_content = run_.has_text || run_.calls.empty();
      value_object message{{"role", std::move(run_.role)},
                           {"content", has_content ? value(std::move(run_.text)) : value()}};
      if (!run_.reasoning.empty())
        message.push_back({"reasoning_content", value(std::move(run_.reasoning))});
      if (!run_.calls.empty()) message.emplace_back("tool_calls", std::move(run_.calls));
      messages_.push_back(std::move(message));
    }
    run_ = {};
  }

  void end_with_answer(const std::string& at, actors::chat_prompt& to) {
    if (!run_.calls.empty())
      return from_.reject(
          {at, "be followed by a message of the user with the results of its tool_use blocks",
           "nothing"});
    if (run_.text.empty()) { // an empty text is no beginning of an answer
      run_ = {};
      return;
    }
    if (blank.find(run_.text.back()) != std::string_view::npos)
      return from_.reject(at,
                          "text that does not end with white space, as the answer goes on from it",
                          value(run_.text));
    to.continue_last = true;
  }

  void add_text(std::string_view text) {
    add_line(run_.text, text, !run_.has_text);
    run_.has_text = true;
  }

  void read_blocks(const std::string& at, const value& content) {
    if (const auto* text = content.as_string()) return add_text(*text);
    const auto* blocks = content.as_list();
    if (blocks == nullptr) return from_.reject(at, "a string or a list of blocks", content);
    for (std::size_t i = 0; i < blocks->size() && from_.ok(); ++i)
      read_block(at + "[" + std::to_string(i) + "]", (*blocks)[i]);
  }

  void read_block(const std::string& at, const value& block) {
    if (block.as_object() == nullptr)
      return from_.reject(at, "a block, an object with `type`", block);
    const auto type = text_of(block.find("type"));
    if (type == "text") return read_text(at, block);
    if (run_.role == "user" && type == "tool_result") return read_result(at, block);
    if (run_.role == "assistant") {
      if (type == "tool_use") return read_call(at, block);
      if (type == "thinking") return read_thinking(at, block);
      if (type == "redacted_thinking") return; // its content is encrypted for Anthropic's server
    }
    const std::string_view taken = run_.role == "user" ? R"("text" or "tool_result")"
                                   : run_.role == "assistant"
                                       ? R"("text", "tool_use", "thinking" or "redacted_thinking")"
                                       : R"("text")";
    reject(at + ".type",
           std::string(taken) + " in " +
               (run_.role == "system" ? "what the system says" : "a message of this role") +
               ", as no model here reads images or documents, and this server runs no tools",
           block.find("type"));
  }

  void read_text(const std::string& at, const value& block) {
    if (const auto* text = string_in(at, block, "text")) add_text(*text);
  }

  void read_thinking(const std::string& at, const value& block) {
    const auto* text = string_in(at, block, "thinking");
    if (text == nullptr || text->empty()) return;
    add_line(run_.reasoning, *text, run_.reasoning.empty());
  }

  void read_call(const std::string& at, const value& block) {
    const auto* id = string_in(at, block, "id", true);
    const auto* name = string_in(at, block, "name", true);
    const auto* input = member(block, "input");
    if (input != nullptr && input->as_object() == nullptr)
      return from_.reject(at + ".input", "an object", *input);
    if (!from_.ok()) return;
    run_.calls.push_back(make_tool_call(*id, *name, input == nullptr ? value() : *input));
  }

  void read_result(const std::string& at, const value& block) {
    const auto* id = string_in(at, block, "tool_use_id", true);
    bool failed = false;
    if (const auto* flag = member(block, "is_error")) {
      if (flag->as_bool() == nullptr) return from_.reject(at + ".is_error", "true or false", *flag);
      failed = *flag->as_bool();
    }
    std::string text;
    if (const auto* content = member(block, "content"))
      text = read_result_content(at + ".content", *content);
    if (!from_.ok()) return;
    // Templates have no member for the flag `is_error`, so the text states the error.
    if (failed && !text.starts_with("Error")) text = text.empty() ? "Error" : "Error: " + text;
    run_.results.push_back(
        value_object{{"role", "tool"}, {"content", std::move(text)}, {"tool_call_id", *id}});
  }

  std::string read_result_content(const std::string& at, const value& content) {
    if (const auto* text = content.as_string()) return *text;
    const auto* blocks = content.as_list();
    std::string joined;
    if (blocks == nullptr) from_.reject(at, "a string or a list of text blocks", content);
    for (std::size_t i = 0; blocks != nullptr && i < blocks->size() && from_.ok(); ++i) {
      const auto& block = (*blocks)[i];
      const auto name = at + "[" + std::to_string(i) + "]";
      if (text_of(block.find("type")) != "text")
        reject(name + ".type", "\"text\", as no model here reads images or documents",
               block.find("type"));
      else if (const auto* text = string_in(name, block, "text"))
        add_line(joined, *text, i == 0);
    }
    return joined;
  }

  /// Returns a string member that is required. If it is missing, reports an error to `from_` and
  /// returns null.
  const std::string* string_in(const std::string& at, const value& block, std::string_view name,
                               bool filled = false) {
    const auto* found = block.find(name);
    const auto* text = found == nullptr ? nullptr : found->as_string();
    if (text != nullptr && !(filled && text->empty())) return text;
    reject(at + "." + std::string(name), filled ? "a string that is not empty" : "a string", found);
    return nullptr;
  }

  fields& from_;
  message_run run_;
  value_list messages_;
};

} // namespace

void read_message_list(fields& from, actors::chat_prompt& to) {
  from.require("messages");
  if (!from.ok()) return;
  const auto& messages = *from.find("messages");
  const auto* list = messages.as_list();
  if (list == nullptr || list->empty())
    return from.reject("messages", "a list of at least one message", messages);
  message_reader reader(from);
  if (const auto* system = from.find("system")) reader.system(*system);
  const auto name_of = [](std::size_t i) { return "messages[" + std::to_string(i) + "]"; };
  for (std::size_t i = 0; i < list->size() && from.ok(); ++i)
    reader.message(name_of(i), (*list)[i]);
  reader.end(name_of(list->size() - 1) + ".content", to);
  if (from.ok() && to.messages.as_list()->empty())
    from.reject("messages", "a list of at least one message with content", messages);
}

} // namespace twill::net
