// conversation: the messages that the items of a Responses request stand for.
//
// Function calls that follow each other, or an assistant's text, belong to one assistant message,
// as templates expect. A plain value; one thread.
#pragma once

#include <string>

#include "config/base/value.hpp"

namespace twill::net {

class conversation {
public:
  explicit conversation(value_list so_far = {});

  void add(value message);
  /// A call of an assistant; it joins the assistant's message that is last, if there is one.
  void add_call(value tool_call);
  /// All messages; results carry the name of the function that was called.
  value_list take();

private:
  void close();

  value_list messages_;
  value_object assistant_; ///< the last message while calls may join it, without them
  value_list calls_;
  bool open_ = false;
};

} // namespace twill::net
