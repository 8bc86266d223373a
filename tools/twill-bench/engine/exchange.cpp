#include "tools/twill-bench/engine/exchange.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "tools/twill-bench/engine/json_scan.hpp"

namespace twill::bench {

std::string error_text(std::string_view json) {
  for (const char* key : {"message", "error", "detail"}) {
    const std::string_view value = json_scan::member(json, key);
    if (!json_scan::string_body(value).empty()) return json_scan::decode(value);
    const std::string_view inner = json_scan::member(value, "message");
    if (!json_scan::string_body(inner).empty()) return json_scan::decode(inner);
  }
  return std::string(json.substr(0, 300));
}

void exchange::take(const update& change, clock::time_point at, bool streamed) {
  if (change.failed) return fail("server", error_text(change.error_json));
  if (change.content) {
    if (!streamed) {
      record_.latency_s = seconds(at - start_);
    } else if (!record_.has_ttft) {
      record_.has_ttft = true;
      record_.ttft_s = seconds(at - start_);
    } else {
      record_.itl_s.push_back(static_cast<float>(seconds(at - last_content_)));
    }
    last_content_ = at;
    ++chunks_;
    counted_tokens_ += change.tokens >= 0 ? change.tokens : 1;
    if (keep_text_) keep(change);
  }
  if (change.content || !change.finish_reason.empty()) record_.latency_s = seconds(at - start_);
  if (!change.finish_reason.empty()) {
    record_.finish_reason = change.finish_reason;
    ended_well_ = true;
  }
  if (change.input_tokens) record_.input_tokens = static_cast<std::int32_t>(*change.input_tokens);
  if (change.output_tokens) {
    record_.output_tokens = static_cast<std::int32_t>(*change.output_tokens);
    record_.from_usage = true;
  }
  if (change.done) {
    ended_well_ = true;
    finished_ = true;
  }
}

void exchange::keep(const update& change) {
  record_.text += json_scan::decode(change.text_json);
  const auto ids = json_scan::integers(change.ids_json);
  record_.ids.insert(record_.ids.end(), ids.begin(), ids.end());
}

void exchange::event(std::string_view payload, clock::time_point at) {
  event(reader_.read_event(payload), payload, at);
}

void exchange::event(const update& change, std::string_view payload, clock::time_point at) {
  if (finished_ || cancel_due()) return; // output after the last wanted token is ignored
  if (change.malformed)
    return fail("protocol", "not an event of this backend: " + std::string(payload.substr(0, 200)));
  take(change, at, true);
}

void exchange::whole(std::string_view body, clock::time_point at) {
  if (finished_) return;
  const update change = reader_.read_whole(body);
  if (change.malformed)
    return fail("protocol", "not a reply of this backend: " + std::string(body.substr(0, 200)));
  take(change, at, false);
}

void exchange::refused(int status, std::string_view body) {
  if (finished_) return;
  record_.http_status = status;
  fail("http_" + std::to_string(status), error_text(body));
}

void exchange::ended() {
  if (record_.how != outcome::unsent) return;
  if (!ended_well_)
    return fail("truncated", "the stream ended after " + std::to_string(chunks_) +
                                 " chunks without an end mark");
  settle(outcome::completed);
}

void exchange::fail(std::string kind, std::string message) {
  if (record_.how != outcome::unsent) return;
  record_.error_kind = std::move(kind);
  record_.error = std::move(message);
  settle(outcome::failed);
}

void exchange::cancelled() {
  if (record_.how == outcome::unsent) settle(outcome::cancelled);
}

void exchange::interrupted() {
  if (record_.how == outcome::unsent) settle(outcome::interrupted);
}

void exchange::settle(outcome how) {
  record_.how = how;
  finished_ = true;
  if (!record_.from_usage) record_.output_tokens = counted_tokens_;
  if (record_.input_tokens == 0) record_.input_tokens = record_.asked_input_tokens;
}

bool exchange::cancel_due() const {
  return !finished_ && cancel_.after_tokens && counted_tokens_ >= *cancel_.after_tokens;
}

} // namespace twill::bench
