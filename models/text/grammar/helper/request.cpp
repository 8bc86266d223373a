#include "models/text/grammar/helper/request.hpp"

#include <cstring>
#include <utility>

namespace twill::models::grammar {
namespace {

void put(std::string& out, std::int64_t n) {
  char bytes[sizeof n];
  std::memcpy(bytes, &n, sizeof n);
  out.append(bytes, sizeof n);
}

void put(std::string& out, std::string_view text) {
  put(out, static_cast<std::int64_t>(text.size()));
  out += text;
}

class reader {
public:
  explicit reader(std::string_view bytes) : left_(bytes) {}
  std::int64_t number() {
    std::int64_t n = 0;
    if (left_.size() < sizeof n) {
      whole_ = false;
      return 0;
    }
    std::memcpy(&n, left_.data(), sizeof n);
    left_.remove_prefix(sizeof n);
    return n;
  }
  /// Reads the number of items that take at least eight bytes each.
  std::int64_t count() {
    const auto n = number();
    if (n < 0 || n > static_cast<std::int64_t>(left_.size() / 8)) whole_ = false;
    return whole_ ? n : 0;
  }
  std::string text() {
    const auto n = number();
    if (n < 0 || n > static_cast<std::int64_t>(left_.size())) whole_ = false;
    if (!whole_) return {};
    std::string out(left_.substr(0, static_cast<std::size_t>(n)));
    left_.remove_prefix(static_cast<std::size_t>(n));
    return out;
  }
  bool whole() const { return whole_; }

private:
  std::string_view left_;
  bool whole_ = true;
};

} // namespace

std::string encoded(const config::grammar_spec& spec) {
  std::string out;
  put(out, static_cast<std::int64_t>(spec.kind));
  put(out, spec.text);
  put(out, std::int64_t{spec.closed_objects});
  put(out, static_cast<std::int64_t>(spec.choices.size()));
  for (const auto& choice : spec.choices)
    put(out, choice);
  for (const auto* text : {&spec.list_begin, &spec.list_between, &spec.list_end})
    put(out, *text);
  put(out, std::int64_t{spec.repeated});
  put(out, std::int64_t{spec.as_arguments});
  put(out, static_cast<std::int64_t>(spec.frames.size()));
  for (const auto& frame : spec.frames)
    for (const auto* text : {&frame.before, &frame.schema, &frame.after})
      put(out, *text);
  return out;
}

std::string encoded(const helper_request& request) {
  std::string out = encoded(request.spec);
  put(out, request.memory_bytes);
  put(out, request.cpu_ms);
  put(out, std::int64_t{request.repeated_items});
  put(out, static_cast<std::int64_t>(request.token_bytes.size()));
  for (const auto& bytes : request.token_bytes)
    put(out, bytes);
  put(out, static_cast<std::int64_t>(request.end_ids.size()));
  for (const auto id : request.end_ids)
    put(out, std::int64_t{id});
  return out;
}

std::optional<helper_request> decoded_request(std::string_view bytes) {
  reader in(bytes);
  helper_request out;
  out.spec.kind = static_cast<config::grammar_kind>(in.number());
  out.spec.text = in.text();
  out.spec.closed_objects = in.number() != 0;
  for (auto n = in.count(); n > 0; --n)
    out.spec.choices.push_back(in.text());
  for (auto* text : {&out.spec.list_begin, &out.spec.list_between, &out.spec.list_end})
    *text = in.text();
  out.spec.repeated = in.number() != 0;
  out.spec.as_arguments = in.number() != 0;
  for (auto n = in.count(); n > 0; --n) {
    config::framed_schema frame;
    for (auto* text : {&frame.before, &frame.schema, &frame.after})
      *text = in.text();
    out.spec.frames.push_back(std::move(frame));
  }
  out.memory_bytes = in.number();
  out.cpu_ms = in.number();
  out.repeated_items = in.number() != 0;
  for (auto n = in.count(); n > 0; --n)
    out.token_bytes.push_back(in.text());
  for (auto n = in.count(); n > 0; --n)
    out.end_ids.push_back(static_cast<token_id>(in.number()));
  if (!in.whole()) return std::nullopt;
  return out;
}

std::string encoded_answer(const result<std::string>& answer) {
  std::string out;
  put(out, answer.ok() ? std::int64_t{-1} : static_cast<std::int64_t>(answer.code()));
  put(out, answer.ok() ? answer.value() : answer.detail());
  return out;
}

result<std::string> decoded_answer(std::string_view bytes) {
  reader in(bytes);
  const auto code = in.number();
  auto text = in.text();
  if (!in.whole() || code > static_cast<std::int64_t>(errc::helper_failed))
    return failure{errc::helper_failed, "the helper process ended in the middle of its answer"};
  if (code < 0) return text;
  return failure{static_cast<errc>(code), std::move(text)};
}

} // namespace twill::models::grammar
