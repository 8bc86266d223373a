// conversation: builds the chat messages that the items of a Responses request stand for.
//
// Consecutive function calls, and an assistant's text before them, are merged into one assistant
// message, because templates expect this form. Not thread-safe.
#pragma once

#include <string>

#include "config/base/value.hpp"

namespace twill::net {

class conversation {
public:
  explicit conversation(value_list so_far = {});

  void add(value message);
  /// Adds a tool call. If the last message is an assistant's, the call becomes part of that
  /// message; otherwise a new assistant message begins.
  void add_call(value tool_call);
  /// Returns all messages. Tool results get the name of the function that was called.
  value_list take();

private:
  void close();

  value_list messages_;
  value_object assistant_; ///< the last message, without its calls, while calls may still be added
  value_list calls_;
  bool open_ = false;
};

} // namespace twill::net
