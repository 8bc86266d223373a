#include "tests/actors/session/plain_output.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "models/text/tool_calls/parser.hpp"

namespace session_tests {

using namespace twill::actors;

namespace {

constexpr const char* replacement = "\xEF\xBF\xBD";

/// The ranges of characters that are encoded in one to four bytes.
constexpr std::pair<std::uint32_t, std::uint32_t> one_byte[] = {{0, 0x7F}};
constexpr std::pair<std::uint32_t, std::uint32_t> two_bytes[] = {{0x80, 0x7FF}};
constexpr std::pair<std::uint32_t, std::uint32_t> three_bytes[] = {{0x800, 0xD7FF},
                                                                   {0xE000, 0xFFFF}};
constexpr std::pair<std::uint32_t, std::uint32_t> four_bytes[] = {{0x10000, 0x10FFFF}};

std::span<const std::pair<std::uint32_t, std::uint32_t>> characters_of(std::size_t length) {
  switch (length) {
  case 1:
    return one_byte;
  case 2:
    return two_bytes;
  case 3:
    return three_bytes;
  default:
    return four_bytes;
  }
}

/// The length of a character that begins with this byte; 0 if none does.
std::size_t length_from(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >> 5 == 0b110) return 2;
  if (first >> 4 == 0b1110) return 3;
  return first >> 3 == 0b11110 ? 4 : 0;
}

/// Whether the bytes are the beginning of a character.
bool begins_character(const std::string& bytes) {
  const std::size_t length = length_from(static_cast<unsigned char>(bytes[0]));
  if (length < bytes.size()) return false;
  constexpr std::uint32_t bits_of_first[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  std::uint32_t low = static_cast<unsigned char>(bytes[0]) & bits_of_first[length];
  std::uint32_t high = low;
  for (std::size_t i = 1; i < length; ++i) {
    const auto next = i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0;
    if (i < bytes.size() && next >> 6 != 0b10) return false;
    low = low * 64 + (i < bytes.size() ? next % 64 : 0);
    high = high * 64 + (i < bytes.size() ? next % 64 : 63);
  }
  const auto spelled = characters_of(length);
  return std::any_of(spelled.begin(), spelled.end(),
                     [&](const auto& range) { return low <= range.second && high >= range.first; });
}

bool holds(const std::vector<std::int32_t>& ids, std::int32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

std::string bytes_of(const plain_rules& rules, std::span<const std::int32_t> ids) {
  std::string all;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const bool ends = holds(rules.stop_ids, ids[i]);
    if (ends && !rules.params->include_stop_str_in_output) continue;
    const bool shows = !rules.params->skip_special_tokens || holds(rules.shown, ids[i]);
    std::string bytes = rules.tokens->token_bytes(ids[i], shows);
    if (rules.begins && all.empty() && rules.tokens->drops_leading_space(ids[i]) &&
        !bytes.empty()) {
      bytes.erase(0, 1);
      // The next token is not the first one, even if no byte of this one is left.
      if (bytes.empty()) {
        plain_rules rest = rules;
        rest.begins = false;
        return bytes_of(rest, ids.subspan(i + 1));
      }
    }
    all += bytes;
  }
  return all;
}

struct found_stop {
  std::size_t begin = 0, end = 0;
};

/// The stop string that ends first behind `from`; the longest if several end there.
std::optional<found_stop> first_stop(const std::string& text, std::size_t from,
                                     const std::vector<std::string>& stops) {
  for (std::size_t end = from + 1; end <= text.size(); ++end) {
    std::size_t longest = 0;
    for (const std::string& stop : stops)
      if (stop.size() <= end - from && stop.size() > longest &&
          text.compare(end - stop.size(), stop.size(), stop) == 0)
        longest = stop.size();
    if (longest > 0) return found_stop{end - longest, end};
  }
  return std::nullopt;
}

/// The length of the text that no stop string can still remove; it is at least `from`.
std::size_t certain(const std::string& text, std::size_t from,
                    const std::vector<std::string>& stops) {
  for (std::size_t at = from; at < text.size(); ++at)
    for (const std::string& stop : stops)
      if (stop.size() > text.size() - at && stop.starts_with(text.substr(at))) return at;
  return text.size();
}

output_part part_of(twill::models::tool_calls::call_event&& read) {
  using from = twill::models::tool_calls::call_event_kind;
  using to = output_part_kind;
  constexpr std::pair<from, to> kinds[] = {{from::text, to::text},
                                           {from::reasoning, to::reasoning},
                                           {from::call_begin, to::call_begin},
                                           {from::call_arguments, to::call_arguments},
                                           {from::call_end, to::call_end}};
  output_part part;
  for (const auto& kind : kinds)
    if (kind.first == read.kind) part.kind = kind.second;
  part.text = std::move(read.bytes);
  part.call = read.call;
  part.complete = read.complete;
  part.call_id = std::move(read.id);
  return part;
}

} // namespace

std::string plain_text(const std::string& bytes, bool over) {
  std::string out;
  for (std::size_t at = 0; at < bytes.size();) {
    std::size_t n = 0; // how many bytes from here are the beginning of a character
    while (at + n < bytes.size() && begins_character(bytes.substr(at, n + 1)))
      ++n;
    const bool whole = n > 0 && n == length_from(static_cast<unsigned char>(bytes[at]));
    if (!whole && at + n == bytes.size() && !over) return out;
    out += whole ? bytes.substr(at, n) : replacement;
    at += std::max<std::size_t>(n, 1);
  }
  return out;
}

plain_reading read_plainly(const plain_rules& rules, std::span<const std::int32_t> ids) {
  plain_reading out;
  if (ids.empty()) return out;
  const auto& params = *rules.params;
  const bool stopped = holds(rules.stop_ids, ids.back());
  const bool over = stopped || ids.size() >= rules.max_new;
  out.text = plain_text(bytes_of(rules, ids), over);
  const auto least = static_cast<std::size_t>(params.min_tokens);
  // A stop string must begin behind the text of the tokens before token number `min_tokens`.
  std::size_t from = 0;
  if (least > 1)
    from = ids.size() < least ? out.text.size()
                              : plain_text(bytes_of(rules, ids.first(least - 1)), false).size();
  if (const auto stop = first_stop(out.text, from, params.stop)) {
    out.stop_string = out.text.substr(stop->begin, stop->end - stop->begin);
    out.text.resize(params.include_stop_str_in_output ? stop->end : stop->begin);
    out.finish = finish_reason::stop;
  } else if (over) {
    out.finish = stopped ? finish_reason::stop : finish_reason::length;
    if (stopped) out.stop_token = ids.back();
  } else {
    out.text.resize(certain(out.text, from, params.stop));
  }
  return out;
}

plain_step last_step(const plain_rules& rules, std::span<const std::int32_t> ids) {
  plain_step step;
  twill::models::tool_calls::parser parser(rules.reading);
  // A parser must receive all tokens from the first one on.
  const std::size_t first = rules.parses || ids.empty() ? 1 : ids.size();
  for (std::size_t n = first; n <= ids.size(); ++n) {
    const std::string before = read_plainly(rules, ids.first(n - 1)).text;
    step.reading = read_plainly(rules, ids.first(n));
    step.text = step.reading.text.substr(before.size());
    if (!rules.parses) continue;
    step.parts.clear();
    auto read = parser.push(step.text);
    if (step.reading.finish)
      for (auto& late : parser.finish())
        read.push_back(std::move(late));
    for (auto& one : read) {
      step.parts.push_back(part_of(std::move(one)));
      if (step.parts.back().kind == output_part_kind::call_end && step.parts.back().complete)
        step.called = true;
    }
    step.text.clear();
  }
  if (step.called && step.reading.finish == finish_reason::stop)
    step.reading.finish = finish_reason::tool_calls;
  return step;
}

} // namespace session_tests
