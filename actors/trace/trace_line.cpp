#include "actors/trace/trace_line.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "models/checkpoint/json.hpp"

namespace twill::actors {

namespace {

std::uint64_t number_of(std::string_view text) {
  std::uint64_t n = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), n);
  if (text.empty() || read.ec != std::errc() || read.ptr != text.data() + text.size())
    throw bad_trace("\"" + std::string(text.substr(0, 40)) + "\" is no number");
  return n;
}

} // namespace

number_ranges::number_ranges(std::string_view text) {
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view item = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const std::size_t dash = item.find('-');
    const std::uint64_t first = number_of(item.substr(0, dash));
    const std::uint64_t last =
        dash == std::string_view::npos ? first : number_of(item.substr(dash + 1));
    ranges_.emplace_back(first, last);
  }
}

bool number_ranges::contains(std::uint64_t n) const {
  return std::any_of(ranges_.begin(), ranges_.end(),
                     [n](const auto& r) { return r.first <= n && n <= r.second; });
}

trace_line::trace_line(const std::string& text) : text_(text) {
  auto parsed = models::parse_json(text, "line");
  if (!parsed.ok()) throw bad_trace(parsed.detail());
  members_ = std::move(parsed).value();
  if (members_.as_object() == nullptr) throw bad_trace("a line must be a JSON object");
  what_ = this->text("e");
}

std::string_view trace_line::body() const {
  const std::size_t begin = text_.find("\"e\":");
  if (begin == std::string::npos || text_.back() != '}')
    throw bad_trace("a line must be written as twilld writes it");
  return std::string_view(text_).substr(begin, text_.size() - begin - 1);
}

void trace_line::wrong(const char* name, const std::string& rule) const {
  throw bad_trace("`" + std::string(name) + "` must be " + rule);
}

std::int64_t trace_line::number(const char* name, std::int64_t least, std::int64_t most) const {
  const value* found = members_.find(name);
  const std::int64_t* n = found == nullptr ? nullptr : found->as_int();
  if (found != nullptr && n == nullptr) wrong(name, "a whole number");
  const std::int64_t given = n == nullptr ? 0 : *n;
  if (given < least || given > most)
    wrong(name, "between " + std::to_string(least) + " and " + std::to_string(most) + ", got " +
                    std::to_string(given));
  return given;
}

double trace_line::real(const char* name) const {
  const value* found = members_.find(name);
  if (found == nullptr) return 0;
  const auto given = found->as_number();
  if (!given.has_value() || !std::isfinite(*given)) wrong(name, "a number");
  return *given;
}

bool trace_line::yes(const char* name) const {
  const value* found = members_.find(name);
  if (found == nullptr) return false;
  if (found->as_bool() == nullptr) wrong(name, "true or false");
  return *found->as_bool();
}

std::string trace_line::text(const char* name) const {
  const value* found = members_.find(name);
  if (found == nullptr) return {};
  if (found->as_string() == nullptr) wrong(name, "a text");
  return *found->as_string();
}

batcher_limits trace_line::limits() const {
  constexpr std::int64_t many = 1 << 24;
  batcher_limits l;
  l.plan.max_step_tokens = small("step_tokens", 1, many);
  l.plan.max_running = small("running", 1, many);
  l.plan.block_tokens = small("block_tokens", 1, 1 << 16);
  l.plan.prefix_cache = yes("prefix_cache");
  l.plan.copies_blocks = yes("copies_blocks");
  l.plan.mixed_prompt_tokens = small("mixed_tokens", 0, many);
  l.plan.max_logit_rows = small("logit_rows", 1, many);
  l.gap_target_s = real("gap_target");
  l.max_queued = small("queued", 0, many);
  l.fair = yes("fair");
  l.total_blocks = number("blocks", 1, many);
  l.shareable_length = small("shareable");
  return l;
}

} // namespace twill::actors
