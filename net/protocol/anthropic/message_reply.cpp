#include "net/protocol/anthropic/message_reply.hpp"

#include <algorithm>

#include "net/protocol/anthropic/error_form.hpp"
#include "net/protocol/json/json_parse.hpp"
#include "net/random_id.hpp"

namespace twill::net {
namespace {

constexpr std::string_view white_space = " \t\r\n";

/// Appends the event `type` whose data is an object with this type and the members that `write`
/// adds.
template <class Write>
void append_event(std::string& out, std::string_view type, Write write) {
  out += "event: ";
  out += type;
  out += "\ndata: ";
  json_writer json(out);
  json.begin_object().field("type", type);
  write(json);
  json.end_object();
  out += "\n\n";
}

template <class Write>
void append_delta(std::string& out, std::int64_t index, std::string_view type, Write write) {
  append_event(out, "content_block_delta", [&](json_writer& json) {
    json.field("index", index).key("delta").begin_object().field("type", type);
    write(json);
    json.end_object();
  });
}

} // namespace

void message_reply::on_event(std::size_t, actors::event&& ev, std::string& out) {
  using kind = actors::output_part_kind;
  tally_.add(ev);
  if (options_.stream) begin(out);
  const bool only_thinking =
      !ev.parts.empty() && std::all_of(ev.parts.begin(), ev.parts.end(), [](const auto& part) {
        return part.kind == kind::reasoning;
      });
  if (only_thinking) thinking_tokens_ += static_cast<std::int32_t>(ev.tokens.size());
  for (const auto& part : ev.parts)
    take_part(part, out);
  // If the engine does not parse the output into parts, the text is in `ev.text`.
  if (!ev.text.empty()) take_words(block::text, ev.text, out);
  if (!ev.finish.has_value()) return;
  finish_ = ev.finish;
  stop_string_ = std::move(ev.stop_string);
  close_block(out);
}

void message_reply::on_end(std::string& out) {
  if (!options_.stream) {
    json_writer json(out);
    add_message(json, true);
    return;
  }
  begin(out);
  append_event(out, "message_delta", [&](json_writer& json) {
    json.key("delta").begin_object();
    add_stop(json);
    json.end_object().key("usage");
    add_usage_to(json);
    if (options_.context_management) json.key("context_management").raw(R"({"applied_edits":[]})");
  });
  append_event(out, "message_stop", [](json_writer&) {});
}

void message_reply::on_error(const api_error& error, std::string& out) {
  append_event(out, "error",
               [&](json_writer& json) { json.key("error").raw(anthropic_error_object(error)); });
}

void message_reply::begin(std::string& out) {
  if (begun_) return;
  begun_ = true;
  append_event(out, "message_start", [&](json_writer& json) {
    json.key("message");
    add_message(json, false);
  });
}

// --- blocks --------------------------------------------------------------------------------------

void message_reply::take_part(const actors::output_part& part, std::string& out) {
  using kind = actors::output_part_kind;
  if (part.call > 0 && !options_.parallel_calls) return;
  switch (part.kind) {
  case kind::text:
    return take_words(block::text, part.text, out);
  case kind::reasoning:
    after_thinking_ = true;
    if (options_.thinking != thinking_shown::no) take_words(block::thinking, part.text, out);
    return;
  case kind::call_begin:
    return begin_call(part, out);
  case kind::call_arguments: {
    if (open_ != block::tool_use || part.call != call_) return;
    const auto piece = input_.push(part.text);
    if (!piece.empty()) add_words(piece, out);
    return;
  }
  case kind::call_end:
    if (open_ == block::tool_use && part.call == call_) close_block(out);
    return;
  }
}

/// Opens a block only when the first character that is not white space arrives.
void message_reply::take_words(block what, std::string_view words, std::string& out) {
  if (open_ == what) return add_words(words, out);
  if (awaited_ != what) space_.clear();
  awaited_ = what;
  const auto first = words.find_first_not_of(white_space);
  if (first == std::string_view::npos) {
    space_ += words;
    return;
  }
  // Line ends around reasoning are written by the template and do not belong to the answer.
  const bool bare = what == block::thinking || after_thinking_;
  std::string begun = bare ? std::string() : std::move(space_);
  begun += bare ? words.substr(first) : words;
  open_block(what, out);
  add_words(begun, out);
}

void message_reply::add_words(std::string_view words, std::string& out) {
  if (open_ == block::thinking && options_.thinking == thinking_shown::signature) return;
  if (!options_.stream) {
    words_ += words;
    return;
  }
  const bool is_text = open_ == block::text;
  const bool is_thinking = open_ == block::thinking;
  append_delta(out, index_,
               is_text       ? "text_delta"
               : is_thinking ? "thinking_delta"
                             : "input_json_delta",
               [&](json_writer& json) {
                 json.field(is_text ? "text" : is_thinking ? "thinking" : "partial_json", words);
               });
}

void message_reply::begin_call(const actors::output_part& part, std::string& out) {
  close_block(out);
  call_ = part.call;
  call_name_ = part.text;
  call_id_ = part.call_id.empty() ? part_id("toolu_", options_.identity.id,
                                            static_cast<std::size_t>(std::max(part.call, 0)))
                                  : part.call_id;
  input_ = {};
  open_block(block::tool_use, out);
}

void message_reply::open_block(block what, std::string& out) {
  close_block(out);
  open_ = what;
  ++index_;
  words_.clear();
  if (!options_.stream) return;
  append_event(out, "content_block_start", [&](json_writer& json) {
    json.field("index", index_).key("content_block").begin_object();
    if (what == block::text)
      json.field("type", "text").field("text", "");
    else if (what == block::thinking)
      json.field("type", "thinking").field("thinking", "").field("signature", "");
    else
      json.field("type", "tool_use")
          .field("id", call_id_)
          .field("name", call_name_)
          .key("input")
          .raw("{}");
    json.end_object();
  });
}

void message_reply::close_block(std::string& out) {
  space_.clear();
  awaited_ = block::none;
  if (open_ == block::none) return;
  if (open_ != block::thinking) after_thinking_ = false;
  if (!options_.stream) {
    add_whole_block();
  } else {
    if (open_ == block::thinking)
      append_delta(out, index_, "signature_delta",
                   [&](json_writer& json) { json.field("signature", signature()); });
    append_event(out, "content_block_stop",
                 [&](json_writer& json) { json.field("index", index_); });
  }
  open_ = block::none;
}

void message_reply::add_whole_block() {
  if (!content_.empty()) content_ += ',';
  json_writer json(content_);
  json.begin_object();
  switch (open_) {
  case block::text:
    json.field("type", "text").field("text", words_);
    break;
  case block::thinking:
    json.field("type", "thinking").field("thinking", words_).field("signature", signature());
    break;
  case block::tool_use: {
    const auto parsed = parse_json(input_.whole() ? words_ : input_.closed(words_));
    json.field("type", "tool_use").field("id", call_id_).field("name", call_name_).key("input");
    if (parsed.ok())
      json.add(parsed.value());
    else
      json.raw("{}");
    break;
  }
  case block::none:
    break;
  }
  json.end_object();
}

/// Clients keep and send back thinking blocks only if the blocks have a signature. This server does
/// not check the signature.
std::string message_reply::signature() const {
  return part_id("sig_", options_.identity.id, static_cast<std::size_t>(index_));
}

// --- the message ---------------------------------------------------------------------------------

void message_reply::add_message(json_writer& json, bool whole) const {
  json.begin_object()
      .field("id", options_.identity.id)
      .field("type", "message")
      .field("role", "assistant")
      .field("model", options_.identity.model);
  json.key("content").begin_array();
  if (!content_.empty()) json.raw(content_);
  json.end_array();
  if (whole)
    add_stop(json);
  else
    json.field("stop_reason", nullptr).field("stop_sequence", nullptr);
  json.key("usage");
  add_usage_to(json);
  if (whole && options_.context_management)
    json.key("context_management").raw(R"({"applied_edits":[]})");
  json.end_object();
}

void message_reply::add_usage_to(json_writer& json) const {
  const auto& use = tally_.total();
  json.begin_object()
      .field("input_tokens", use.prompt_tokens - use.cached_tokens)
      .field("cache_creation_input_tokens", 0)
      .field("cache_read_input_tokens", use.cached_tokens)
      .field("output_tokens", use.completion_tokens);
  json.key("output_tokens_details")
      .begin_object()
      .field("thinking_tokens", thinking_tokens_)
      .end_object()
      .end_object();
}

void message_reply::add_stop(json_writer& json) const {
  json.field("stop_reason", stop_reason()).key("stop_sequence");
  if (stop_reason() == "stop_sequence")
    json.add(stop_string_);
  else
    json.add(nullptr);
}

std::string_view message_reply::stop_reason() const {
  if (finish_ == actors::finish_reason::tool_calls) return "tool_use";
  if (finish_ == actors::finish_reason::stop)
    return stop_string_.empty() ? "end_turn" : "stop_sequence";
  return tally_.total().completion_tokens < options_.max_tokens ? "model_context_window_exceeded"
                                                                : "max_tokens";
}

} // namespace twill::net
