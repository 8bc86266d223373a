// parser: turns the bytes of an answer, as they are generated, into events: text, reasoning and
// tool calls.
//
// Each sequence has its own parser; one thread at a time. Every byte of the answer is reported
// once: as text, as reasoning, or inside a call. Bytes that only looked like a call are reported as
// text. The events do not depend on how the answer is divided among calls of push(), except for
// where runs of text, reasoning and arguments are split. The text of an event never ends inside a
// character, and never contains the beginning of a marker, such as <tool_call>, that later bytes
// complete. White space around calls is not reported.
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
  std::optional<tool_format> calls;       ///< none: calls are treated as text
  std::optional<reasoning_tags> thoughts; ///< none: reasoning tags are treated as text
  bool begins_in_reasoning = false;       ///< the prompt ended in the opening tag
  /// The functions that a grammar allows to be called; empty: no grammar restricts the calls.
  std::vector<std::string> names{};
  bool only_calls = false; ///< the grammar allows only calls, no text
};

class parser {
public:
  explicit parser(parser_options options);

  std::vector<call_event> push(std::string_view bytes);
  /// Ends the answer and returns the events of the bytes held back so far. An unfinished call whose
  /// name is known ends with complete = false. With a grammar (parser_options::names is not empty),
  /// an unfinished call is never reported as text. Its name then also counts as known if the part
  /// written so far is the beginning of exactly one function's name; otherwise nothing is reported.
  std::vector<call_event> finish();

private:
  enum class mode {
    text,
    reasoning,
    call,       ///< in a JSON object of a call
    after_tag,  ///< after the object of a tagged call: white space and the end marker
    list,       ///< after Mistral's marker, or inside a list: an object, `,`, `]` or a bare name
    bare_call,  ///< Mistral: a call outside a list: name, id and arguments, by markers
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
  std::string raw_;     ///< bytes of a possible call, which become text if it is not a call
  std::optional<json_call_reader> json_;
  std::optional<python_call_reader> python_;
  enum class bare_part { name, id, arguments };
  bare_part bare_at_ = bare_part::name; ///< Mistral: the part that is being read
  std::string bare_name_, bare_id_;
  bool bare_ended_ = false;        ///< white space followed the part
  std::set<std::string> call_ids_; ///< ids that were reported
  int n_calls_ = 0;
  bool in_call_ = false;     ///< begun and not ended
  bool in_list_ = false;     ///< inside [ ... ]
  bool only_text_ = false;   ///< bare JSON: the answer is no call
  bool bare_marker_ = false; ///< llama3: the optional marker was read
  bool drop_space_ = false; ///< ChatGLM3: white space before the first word is not part of the text
  std::vector<call_event> out_;
};

} // namespace twill::models::tool_calls
