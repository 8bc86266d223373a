#include "net/http/call_reply.hpp"

namespace twill::net {
namespace {

std::size_t cost(const std::vector<actors::token_output>& tokens) {
  std::size_t bytes = sizeof(actors::token_output) * tokens.size();
  for (const auto& token : tokens)
    bytes += sizeof(actors::token_logprob) * token.top.size();
  return bytes;
}

std::size_t cost(const actors::event& ev) {
  std::size_t bytes = ev.text.size() + cost(ev.tokens) + cost(ev.prompt_scores) +
                      sizeof(std::int32_t) * ev.prompt_ids.size();
  // A number takes about three times as many bytes in the reply as in memory.
  if (ev.embedding != nullptr) bytes += 3 * sizeof(float) * ev.embedding->size();
  for (const auto& part : ev.parts)
    bytes += part.text.size();
  return bytes;
}

} // namespace

call_reply::state call_reply::on_events(std::vector<std::pair<std::uint64_t, actors::event>> events,
                                        const reply_framing& how, std::string& out) {
  if (events.empty()) return state::running;
  std::string produced;
  for (auto& [key, ev] : events) {
    if (stream_ && !head_sent_ && says_nothing(ev)) append_stream({}, false, how, out);
    if (ev.error.has_value()) {
      if (stream_ && !produced.empty()) append_stream(produced, false, how, out);
      fail(from_engine(std::move(*ev.error)), how, out);
      return state::failed;
    }
    if (ev.last) --remaining_;
    if (!stream_) gathered_bytes_ += cost(ev);
    encoder_->on_event(key - first_key_, std::move(ev), produced);
  }
  const bool over = remaining_ == 0;
  if (over) encoder_->on_end(produced);
  if (stream_)
    append_stream(produced, over, how, out);
  else
    body_ += produced;
  if (over && !stream_) append_reply(out, {200, std::move(body_)}, how);
  return over ? state::over : state::running;
}

void call_reply::append_filler(const reply_framing& how, std::string& out) {
  append_stream(encoder_->format().filler, false, how, out);
}

void call_reply::fail(const api_error& error, const reply_framing& how, std::string& out) {
  if (!stream_ || !head_sent_) return append_reply(out, error_reply(error), how);
  std::string last_words;
  encoder_->on_error(error, last_words);
  append_stream(last_words, true, how, out);
}

void call_reply::append_stream(std::string_view produced, bool over, const reply_framing& how,
                               std::string& out) {
  if (!head_sent_) append_stream_head(out, encoder_->format().content_type, how);
  head_sent_ = true;
  if (how.http_1_0) {
    out += produced;
    return;
  }
  append_chunk(out, produced);
  if (over) out += last_chunk;
}

} // namespace twill::net
