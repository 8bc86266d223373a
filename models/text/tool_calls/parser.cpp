#include "models/text/tool_calls/parser.hpp"

#include <algorithm>
#include <utility>

#include "models/text/detokenizer.hpp"

namespace twill::models::tool_calls {
namespace {

using event_kind = call_event_kind;

constexpr std::string_view python_opening = "```python\ntool_call(";

bool is_white(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

bool is_name_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.';
}

/// True for the bytes that the server allows in names of functions: letters, digits and any of
/// `_-.:/` (see net/protocol/tool_fields.cpp).
bool is_bare_name_byte(char c) {
  return is_name_byte(c) || c == ':' || c == '/';
}

/// True if the text may serve as a call's id for clients and for any template.
bool is_call_id(const std::string& id) {
  return !id.empty() && id.size() <= 64 && id != "null" && id.find('.') == std::string::npos;
}

} // namespace

parser::parser(parser_options options) : options_(std::move(options)) {
  if (options_.begins_in_reasoning && options_.thoughts) {
    mode_ = mode::reasoning;
  } else if (options_.calls && options_.calls->syntax == call_syntax::chatglm3) {
    mode_ = mode::first_line;
  }
}

std::vector<call_event> parser::push(std::string_view bytes) {
  for (const char byte : bytes)
    take(byte);
  return std::exchange(out_, {});
}

void parser::take(char byte) {
  switch (mode_) {
  case mode::text:
  case mode::reasoning:
    return take_marked(byte);
  case mode::call:
    return take_call(byte);
  case mode::list:
    return take_list(byte);
  case mode::bare_call:
    return take_bare_call(byte);
  case mode::after_tag:
    return take_after_tag(byte);
  case mode::between:
    return take_between(byte);
  case mode::first_line:
    return take_first_line(byte);
  case mode::python:
    return take_python(byte);
  case mode::after_python:
    // The rest of the code block is not text.
    if (byte == '\n' || byte == '`' || byte == ' ') return;
    mode_ = mode::text;
    return take_marked(byte);
  }
}

/// Returns the markers that have a meaning in the current mode.
std::vector<std::string> parser::markers() const {
  std::vector<std::string> out;
  if (mode_ == mode::reasoning) {
    out.push_back(options_.thoughts->end);
    return out;
  }
  if (options_.thoughts) out.push_back(options_.thoughts->begin);
  if (options_.calls && !options_.calls->begin.empty() && !only_text_ && !bare_marker_)
    out.push_back(options_.calls->begin);
  return out;
}

/// Handles a byte of text or reasoning. The byte is held back while it may be part of a marker.
void parser::take_marked(char byte) {
  held_ += byte;
  while (!held_.empty()) {
    const auto known = markers();
    const auto begins = [&](const std::string& marker) { return marker.starts_with(held_); };
    if (const auto whole = std::find(known.begin(), known.end(), held_); whole != known.end()) {
      held_.clear();
      on_marker(*whole);
      return;
    }
    if (std::any_of(known.begin(), known.end(), begins)) return;
    const char first = held_.front();
    held_.erase(0, 1);
    take_text(first, mode_ == mode::reasoning ? event_kind::reasoning : event_kind::text);
    if (mode_ != mode::text && mode_ != mode::reasoning) {
      // The byte began a call, so the held bytes belong to the call.
      replay(std::exchange(held_, {}));
      return;
    }
  }
}

void parser::take_text(char byte, call_event_kind what) {
  if (what == event_kind::reasoning) {
    pending_ += byte;
    std::string whole;
    take_utf8(pending_, whole);
    append(out_, what, whole);
    return;
  }
  if (is_white(byte)) {
    if (!drop_space_) space_ += byte;
    return;
  }
  drop_space_ = false;
  const bool bare =
      options_.calls && options_.calls->syntax == call_syntax::bare_json && !only_text_;
  if (bare && (byte == '{' || (byte == '[' && options_.calls->begin.empty()))) {
    raw_ = byte;
    in_list_ = byte == '[';
    if (in_list_) {
      mode_ = mode::list;
    } else {
      open_object();
      json_->push(byte);
    }
    return;
  }
  only_text_ = only_text_ || bare;
  // White space before a call is dropped. This space precedes text, so it is text too.
  emit_text(std::exchange(space_, {}));
  emit_text(std::string_view(&byte, 1));
}

void parser::emit_text(std::string_view bytes) {
  pending_ += bytes;
  std::string whole;
  take_utf8(pending_, whole);
  append(out_, event_kind::text, whole);
}

void parser::replay(std::string bytes) {
  for (const char byte : bytes)
    take(byte);
}

void parser::on_marker(const std::string& marker) {
  std::string rest;
  if (!pending_.empty()) {
    // A marker is ASCII, so an unfinished character before it can no longer be completed.
    append(out_, mode_ == mode::reasoning ? event_kind::reasoning : event_kind::text,
           "\xef\xbf\xbd");
    pending_.clear();
  }
  if (mode_ == mode::reasoning) {
    mode_ = mode::text;
    if (options_.calls && options_.calls->syntax == call_syntax::chatglm3) mode_ = mode::first_line;
    return;
  }
  if (options_.thoughts && marker == options_.thoughts->begin) {
    mode_ = mode::reasoning;
    return;
  }
  raw_ = marker;
  switch (options_.calls->syntax) {
  case call_syntax::tagged_json:
    open_object();
    return;
  case call_syntax::listed_json:
    in_list_ = false;
    mode_ = mode::list;
    return;
  default: // bare JSON: the marker only announces that calls follow
    bare_marker_ = true;
    in_list_ = false;
    open_object();
    return;
  }
}

void parser::open_object() {
  mode_ = mode::call;
  json_.emplace(options_.calls->syntax == call_syntax::bare_json);
}

/// Begins a call. The call gets the id that the model wrote, unless that text is no valid id or an
/// earlier call has the same id.
void parser::begin_call(const std::string& name, const std::string& id) {
  space_.clear();
  in_call_ = true;
  raw_.clear();
  out_.push_back({event_kind::call_begin, name, n_calls_, true});
  if (is_call_id(id) && call_ids_.insert(id).second) out_.back().id = id;
}

void parser::end_call(bool complete) {
  out_.push_back({event_kind::call_end, "", n_calls_, complete});
  ++n_calls_;
  in_call_ = false;
}

/// Handles bytes that began like a call but cannot go on as one. If the beginning of the call has
/// already been reported, ends the call as incomplete; otherwise treats the bytes as text.
void parser::give_up() {
  auto raw = std::exchange(raw_, {});
  json_.reset();
  python_.reset();
  held_.clear();
  mode_ = mode::text;
  const bool bare = options_.calls->syntax == call_syntax::bare_json;
  only_text_ = only_text_ || bare;
  if (in_call_) {
    end_call(false);
    return;
  }
  emit_text(std::exchange(space_, {}));
  // White space at the end is held back again, because a call may follow.
  const auto last = std::find_if_not(raw.rbegin(), raw.rend(), is_white);
  emit_text(std::string_view(raw).substr(0, static_cast<std::size_t>(raw.rend() - last)));
  space_ = raw.substr(static_cast<std::size_t>(raw.rend() - last));
}

/// Handles an answer that was cut off within what can only be a call. `name` is the name of the
/// called function or, if `is_whole` is false, the part of it that was written.
void parser::break_off(std::string_view name, bool is_whole) {
  raw_.clear();
  space_.clear();
  if (!in_call_) {
    const auto is_meant = [&](const std::string& known) {
      return is_whole ? known == name : known.starts_with(name);
    };
    const auto& names = options_.names;
    if (std::count_if(names.begin(), names.end(), is_meant) != 1) return;
    begin_call(*std::find_if(names.begin(), names.end(), is_meant));
  }
  end_call(false);
}

void parser::take_call(char byte) {
  using status = json_call_reader::status;
  if (!in_call_) raw_ += byte;
  const auto now = json_->push(byte);
  if (now == status::failed) {
    const bool begun = in_call_;
    give_up();
    if (begun) take(byte); // the byte does not belong to the call that it ended
    return;
  }
  if (json_->is_named() && !in_call_) begin_call(json_->name());
  if (in_call_) append(out_, event_kind::call_arguments, json_->take_arguments(), n_calls_);
  if (now != status::done) return;
  end_call(true);
  json_.reset();
  switch (options_.calls->syntax) {
  case call_syntax::tagged_json:
    held_.clear();
    mode_ = mode::after_tag;
    return;
  case call_syntax::listed_json:
    mode_ = in_list_ ? mode::list : mode::text;
    return;
  default:
    mode_ = in_list_ ? mode::list : mode::between;
    return;
  }
}

/// Takes a byte after the JSON object of a call between two markers, such as <tool_call> and
/// </tool_call>. White space and then the end marker are expected. Any other text ends the call
/// too.
void parser::take_after_tag(char byte) {
  if (held_.empty() && is_white(byte)) return;
  held_ += byte;
  const auto& end = options_.calls->end;
  if (end == held_) {
    held_.clear();
    mode_ = mode::text;
  } else if (!end.starts_with(held_)) {
    mode_ = mode::text;
    replay(std::exchange(held_, {}));
  }
}

void parser::take_list(char byte) {
  raw_ += byte;
  if (is_white(byte)) return;
  const bool mistral = options_.calls->syntax == call_syntax::listed_json;
  if (byte == '{') {
    open_object();
    json_->push(byte);
    return;
  }
  if (mistral && !in_list_ && byte == '[') {
    in_list_ = true;
    return;
  }
  if (in_list_ && byte == ',') return;
  if (in_list_ && byte == ']') {
    in_list_ = false;
    only_text_ = only_text_ || !mistral;
    raw_.clear();
    mode_ = mode::text;
    return;
  }
  if (mistral && !in_list_ && is_bare_name_byte(byte)) {
    bare_name_ = byte;
    bare_id_.clear();
    bare_at_ = bare_part::name;
    bare_ended_ = false;
    held_.clear();
    mode_ = mode::bare_call;
    return;
  }
  give_up();
}

/// Takes a byte of a call that a Mistral model writes without a JSON list. Such a call is a name,
/// optionally a marker and the call's id, optionally another marker, and then the arguments. White
/// space may separate these parts.
void parser::take_bare_call(char byte) {
  constexpr std::size_t longest_part = 256;
  raw_ += byte;
  const auto& format = *options_.calls;
  std::string& part = bare_at_ == bare_part::name ? bare_name_ : bare_id_;
  const bool in_part = bare_at_ != bare_part::arguments;
  if (held_.empty()) {
    if (byte == '{') {
      json_.emplace(false);
      json_->begin_arguments(bare_name_);
      mode_ = mode::call;
      begin_call(bare_name_, bare_id_);
      return take_call(byte);
    }
    if (is_white(byte)) {
      bare_ended_ = in_part && !part.empty();
      return;
    }
    if (in_part && !bare_ended_ && is_bare_name_byte(byte) && part.size() < longest_part) {
      part += byte;
      return;
    }
  }
  held_ += byte;
  if (in_part && held_ == format.arguments) {
    bare_at_ = bare_part::arguments;
  } else if (bare_at_ == bare_part::name && held_ == format.call_id) {
    bare_at_ = bare_part::id;
    bare_ended_ = false;
  } else {
    const bool goes_on = (in_part && format.arguments.starts_with(held_)) ||
                         (bare_at_ == bare_part::name && format.call_id.starts_with(held_));
    if (!goes_on) give_up();
    return;
  }
  held_.clear();
}

/// Bare JSON: expects `;` and another object, or text.
void parser::take_between(char byte) {
  if (byte == ';' || is_white(byte)) return;
  if (byte == '{') {
    raw_ = byte;
    open_object();
    json_->push(byte);
    return;
  }
  only_text_ = true;
  mode_ = mode::text;
  take_marked(byte);
}

/// ChatGLM3: expects "name\n ```python\ntool_call(", or text.
void parser::take_first_line(char byte) {
  raw_ += byte;
  const auto line_end = raw_.find('\n');
  const auto decide_text = [this] {
    auto raw = std::exchange(raw_, {});
    mode_ = mode::text;
    drop_space_ = true; // the answer begins with a line end that is not text
    replay(std::move(raw));
  };
  auto name = raw_.substr(0, line_end);
  name.erase(0, std::min(name.find_first_not_of(' '), name.size()));
  if (!std::all_of(name.begin(), name.end(), is_name_byte) || name.size() > 256)
    return decide_text();
  if (line_end == std::string::npos) return;
  if (name.empty()) return decide_text();
  auto after = std::string_view(raw_).substr(line_end + 1);
  after.remove_prefix(std::min(after.find_first_not_of(" \n"), after.size()));
  if (!python_opening.starts_with(after)) return decide_text();
  if (after != python_opening) return;
  begin_call(name);
  python_.emplace();
  mode_ = mode::python;
}

void parser::take_python(char byte) {
  using status = python_call_reader::status;
  const auto now = python_->push(byte);
  append(out_, event_kind::call_arguments, python_->take_arguments(), n_calls_);
  if (now == status::reading) return;
  end_call(now == status::done);
  python_.reset();
  mode_ = mode::after_python;
}

std::vector<call_event> parser::finish() {
  switch (mode_) {
  case mode::text:
  case mode::reasoning: {
    const auto what = mode_ == mode::reasoning ? event_kind::reasoning : event_kind::text;
    if (what == event_kind::text && options_.only_calls) {
      if (!std::exchange(held_, {}).empty()) break_off({}, false);
      space_.clear();
      break;
    }
    for (const char byte : std::exchange(held_, {})) {
      if (what == event_kind::reasoning)
        take_text(byte, what);
      else if (is_white(byte))
        space_ += byte;
      else
        emit_text(std::exchange(space_, {}) + byte);
    }
    break;
  }
  case mode::call:
  case mode::list:
  case mode::bare_call:
    if (mode_ == mode::list && in_list_ && n_calls_ > 0) break;
    if (options_.names.empty())
      give_up();
    else if (mode_ == mode::call)
      break_off(json_->name(), json_->has_name());
    else
      break_off(mode_ == mode::bare_call ? bare_name_ : std::string_view(),
                bare_ended_ || bare_at_ != bare_part::name || !held_.empty());
    break;
  case mode::after_tag:
    held_.clear(); // the held bytes are the beginning of the end marker
    break;
  case mode::first_line: {
    auto raw = std::exchange(raw_, {});
    if (options_.only_calls) {
      const auto line_end = raw.find('\n');
      if (!raw.empty())
        break_off(std::string_view(raw).substr(0, line_end), line_end != std::string::npos);
      break;
    }
    raw.erase(0, std::min(raw.find_first_not_of(" \n"), raw.size()));
    emit_text(raw);
    break;
  }
  case mode::python:
    append(out_, event_kind::call_arguments, python_->take_arguments(), n_calls_);
    end_call(false);
    break;
  default:
    break;
  }
  const bool in_thoughts = mode_ == mode::reasoning;
  if (n_calls_ == 0) emit_text(std::exchange(space_, {}));
  if (!pending_.empty())
    append(out_, in_thoughts ? event_kind::reasoning : event_kind::text, "\xef\xbf\xbd");
  pending_.clear();
  mode_ = mode::text;
  return std::exchange(out_, {});
}

} // namespace twill::models::tool_calls
