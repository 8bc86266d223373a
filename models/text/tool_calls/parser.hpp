// parser: an answer's bytes as they come, as events: text, reasoning and tool calls.
//
// One per sequence, one thread at a time. Every byte of the answer is handed out once: as text, as
// reasoning, or inside a call. What only looked like a call is text after all. The events are the
// same however the answer is cut into pieces, but for where runs of text, reasoning and arguments
// are split. A piece of text never ends inside a character, and never holds a beginning of a marker
// that the next bytes complete. White space around calls is dropped.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/tool_calls/call_event.hpp"
#include "models/text/tool_calls/json_call_reader.hpp"
#include "models/text/tool_calls/python_call_reader.hpp"
#include "models/text/tool_calls/tool_format.hpp"

namespace twill::models::tool_calls {

struct parser_options {
  std::optional<tool_format> calls;       ///< nothing: calls are text
  std::optional<reasoning_tags> thoughts; ///< nothing: reasoning tags are text
  bool begins_in_reasoning = false;       ///< the prompt ended in the opening tag
  /// A grammar lets calls of these functions through and no other ones; empty: there is none.
  std::vector<std::string> names{};
  bool only_calls = false; ///< the grammar lets calls through and nothing else
};

class parser {
public:
  explicit parser(parser_options options);

  std::vector<call_event> push(std::string_view bytes);
  /// The answer is over: what was held back. An unfinished call whose name is known ends
  /// incomplete. Where a grammar knows it to be a call, it is never text: the name is also known
  /// where what stands of it begins the name of one function alone, and else nothing is reported.
  std::vector<call_event> finish();

private:
  enum class mode {
    text,
    reasoning,
    call,       ///< in a JSON object of a call
    after_tag,  ///< a tagged call's object is over: white space and the end marker
    list,       ///< after Mistral's marker, or inside a list: an object, `,`, `]` or a bare name
    bare_call,  ///< Mistral: a call without a list: name, id and arguments by markers
    between,    ///< bare JSON: after an object
    first_line, ///< ChatGLM3: the line that may be a function's name
    python,     ///< ChatGLM3: in tool_call(...)
    after_python,
  };

  void take(char byte);
  void take_text(char byte, call_event_kind what);
  void take_marked(char byte);
  void take_call(char byte);
  void take_list(char byte);
  void take_bare_call(char byte);
  void take_after_tag(char byte);
  void take_between(char byte);
  void take_first_line(char byte);
  void take_python(char byte);

  void on_marker(const std::string& marker);
  std::vector<std::string> markers() const;
  void begin_call(const std::string& name, const std::string& id = {});
  void end_call(bool complete);
  void open_object();
  void give_up();
  void break_off(std::string_view name, bool is_whole);
  void emit_text(std::string_view bytes);
  void replay(std::string bytes);

  parser_options options_;
  mode mode_ = mode::text;
  std::string held_;    ///< may become a marker
  std::string pending_; ///< text or reasoning: an unfinished character
  std::string space_;   ///< white space that is dropped if a call follows
  std::string raw_;     ///< bytes of what may become a call, as text should it not
  std::optional<json_call_reader> json_;
  std::optional<python_call_reader> python_;
  enum class bare_part { name, id, arguments };
  bare_part bare_at_ = bare_part::name; ///< Mistral: the part that is being read
  std::string bare_name_, bare_id_;
  bool bare_ended_ = false;        ///< white space stood behind the part
  std::set<std::string> call_ids_; ///< those that were handed out
  int n_calls_ = 0;
  bool in_call_ = false;     ///< begun and not ended
  bool in_list_ = false;     ///< inside [ ... ]
  bool only_text_ = false;   ///< bare JSON: the answer is no call
  bool bare_marker_ = false; ///< llama3: the optional marker stood already
  bool drop_space_ = false;  ///< ChatGLM3: white space before the first word is none of the text
  std::vector<call_event> out_;
};

} // namespace twill::models::tool_calls
