#include "actors/session/choice_output.hpp"

#include <algorithm>
#include <utility>

namespace twill::actors {

namespace {

output_part_kind kind_of(models::tool_calls::call_event_kind kind) {
  using from = models::tool_calls::call_event_kind;
  switch (kind) {
  case from::reasoning:
    return output_part_kind::reasoning;
  case from::call_begin:
    return output_part_kind::call_begin;
  case from::call_arguments:
    return output_part_kind::call_arguments;
  case from::call_end:
    return output_part_kind::call_end;
  case from::text:
    break;
  }
  return output_part_kind::text;
}

} // namespace

choice_output::choice_output(const models::tokenizer& text, const config::sampling_params& params,
                             bool begins, const output_plan& plan, bool parses)
    : params_(params), detokenize_(text, params.skip_special_tokens, begins, plan.shown),
      stops_(params.stop, params.include_stop_str_in_output) {
  if (parses) parser_.emplace(plan.reading);
}

void choice_output::add(const token_ready& drawn, event& e) {
  n_tokens_ += 1;
  add_text(drawn, e);
  if (parser_) parse_text(e);
  is_over_ = e.finish.has_value();
}

std::optional<finish_reason> choice_output::replay(std::span<const std::int32_t> made,
                                                   const std::vector<std::int32_t>& stop_ids,
                                                   std::int32_t max_new) {
  for (const std::int32_t id : made) {
    token_ready drawn;
    drawn.token = id;
    drawn.stopped = std::binary_search(stop_ids.begin(), stop_ids.end(), id);
    drawn.length = !drawn.stopped && n_tokens_ + 1 >= max_new;
    event e;
    add(drawn, e);
    if (e.finish) {
      n_tokens_ = static_cast<std::int32_t>(made.size());
      return e.finish;
    }
  }
  return std::nullopt;
}

void choice_output::add_text(const token_ready& drawn, event& e) {
  std::string text;
  if (!drawn.stopped || params_.include_stop_str_in_output) text = detokenize_.push(drawn.token);
  if (drawn.stopped || drawn.length) text += detokenize_.flush();
  bool found = false;
  if (n_tokens_ < params_.min_tokens)
    stops_.pass(text, e.text); // before min_tokens stop strings do not end the output
  else
    found = stops_.push(text, e.text);
  if (found) {
    e.finish = finish_reason::stop;
    e.stop_string = stops_.found();
  } else if (drawn.stopped || drawn.length) {
    stops_.flush(e.text);
    e.finish = drawn.stopped ? finish_reason::stop : finish_reason::length;
    if (drawn.stopped) e.stop_token = drawn.token;
  }
}

/// Parses text that became final into parts of the output.
void choice_output::parse_text(event& e) {
  auto read = parser_->push(e.text);
  if (e.finish)
    for (auto& late : parser_->finish())
      read.push_back(std::move(late));
  e.text.clear();
  e.parts.reserve(read.size());
  for (auto& r : read) {
    output_part part;
    part.kind = kind_of(r.kind);
    if (part.kind == output_part_kind::call_end) whole_calls_ += r.complete ? 1 : 0;
    part.text = std::move(r.bytes);
    part.call_id = std::move(r.id);
    part.call = r.call;
    part.complete = r.complete;
    e.parts.push_back(std::move(part));
  }
  if (e.finish == finish_reason::stop && whole_calls_ > 0) e.finish = finish_reason::tool_calls;
}

} // namespace twill::actors
