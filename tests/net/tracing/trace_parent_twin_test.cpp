// The reader of `traceparent` headers accepts and refuses what a regular expression that follows
// the standard does. The headers are valid ones in which each character in turn is replaced.
#include "net/tracing/trace_parent.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <regex>
#include <string>

#include "tests/catch.hpp"
#include "tests/support/operations.hpp"

using namespace twill::net;
using namespace twill::test;

namespace {

std::string hex(std::size_t n_digits, std::uint32_t seed) {
  std::string text;
  for (std::size_t i = 0; i < n_digits; ++i) {
    seed = seed * 1664525u + 1013904223u;
    text += "0123456789abcdef"[seed >> 28];
  }
  return text;
}

template <class Bytes>
Bytes bytes_of(const std::string& digits) {
  Bytes out{};
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<std::uint8_t>(std::stoi(digits.substr(2 * i, 2), nullptr, 16));
  return out;
}

bool is_all_zero(const std::string& digits) {
  return digits.find_first_not_of('0') == std::string::npos;
}

std::optional<trace_parent> read_plainly(const std::string& text) {
  static const std::regex form("([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[^]*)?");
  std::smatch parts;
  if (!std::regex_match(text, parts, form)) return std::nullopt;
  if (parts[1] == "ff" || (parts[1] == "00" && parts[5].matched)) return std::nullopt;
  if (is_all_zero(parts[2]) || is_all_zero(parts[3])) return std::nullopt;
  return trace_parent{bytes_of<trace_id>(parts[2]), bytes_of<span_id>(parts[3]),
                      std::stoi(parts[4], nullptr, 16) % 2 == 1};
}

/// A valid text first; each further operation changes it.
void play(const operations& sequence) {
  const operation setup = sequence.empty() ? operation{} : sequence.front();
  const char* const versions[] = {"00", "00", "01", "cc", "fe", "ff", "0f", "f0"};
  const char* const flags[] = {"00", "01", "02", "03", "fe", "ff", "10", "80"};
  // All zeros, zeros with a 1 at one end, or random digits.
  const auto digits = [](std::size_t n, std::uint32_t kind, std::uint32_t seed) {
    std::string text = kind % 8 < 3 ? std::string(n, '0') : hex(n, seed);
    if (kind % 8 == 1) text.front() = '1';
    if (kind % 8 == 2) text.back() = '1';
    return text;
  };
  std::string text = std::string(versions[setup.kind % 8]) + "-" + digits(32, setup.a, setup.a) +
                     "-" + digits(16, setup.b, setup.b) + "-" + flags[setup.c % 8];
  for (std::size_t i = 0; i <= sequence.size(); ++i) {
    const auto is = read_trace_parent(text), expected = read_plainly(text);
    demand_equal(is.has_value(), expected.has_value(), "whether this is valid: " + text);
    if (is) {
      demand(is->trace == expected->trace, "the trace of " + text);
      demand(is->span == expected->span, "the span of " + text);
      demand_equal(is->sampled, expected->sampled, "whether this is sampled: " + text);
    }
    if (i == 0 || i == sequence.size()) continue;
    const operation& op = sequence[i];
    constexpr std::string_view others = "0f9a1-gG/:`@AF \n";
    const char other = others[op.b % others.size()];
    switch (op.kind % 8) {
    case 0:
      text += op.c % 2 == 0 ? "-" : "-more-" + hex(4, op.a);
      break;
    case 1:
      text += other;
      break;
    case 2:
      if (!text.empty())
        text.resize(text.size() - 1 - op.a % std::min<std::size_t>(3, text.size()));
      break;
    case 3:
      if (!text.empty()) text.erase(op.a % text.size(), 1);
      break;
    case 4: // ends of fields, where they meet
      for (const std::size_t at : {0u, 1u, 2u, 3u, 34u, 35u, 36u, 51u, 52u, 53u, 54u})
        if (at < text.size() && op.a % 11 == at % 11) text[at] = other;
      break;
    default:
      if (!text.empty()) text[op.a % text.size()] = other;
    }
  }
}

} // namespace

TEST_CASE("A traceparent is valid where the standard says so, and says what it says") {
  CHECK(first_failure({.cases = 10'000, .long_cases = 300'000, .most_operations = 6}, play) == "");
}
