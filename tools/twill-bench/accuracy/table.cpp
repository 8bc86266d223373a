#include "tools/twill-bench/accuracy/table.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>

namespace twill::bench {
namespace {

template <class... Values>
std::string formatted(const char* format, Values... values) {
  std::array<char, 256> line{};
  const int n = std::snprintf(line.data(), line.size(), format, values...);
  return {line.data(), std::min(static_cast<std::size_t>(n), line.size() - 1)};
}

/// The change in percent, rounded to the digits that are shown, so that "-0.00" never appears.
double percent_change(const tally& t, int decimals) {
  const double last_digit = std::pow(10.0, -decimals);
  return last_digit *
             std::round(100 * (t.perplexity() / t.reference_perplexity() - 1) / last_digit) +
         0.0;
}

std::string greedy_text(const tally& t) {
  return t.greedy_tokens() == 0 ? "-" : formatted("%.2f %%", 100 * t.greedy_found());
}

} // namespace

std::string text_header() {
  return formatted("%-36s %-11s %9s %11s %10s %10s %11s %10s %10s\n", "model", "types", "positions",
                   "same argmax", "mean KL", "max KL", "perplexity", "vs f32", "greedy");
}

std::string text_lines(const std::string& model, const std::vector<type_pair>& pairs,
                       const std::vector<tally>& tallies) {
  std::string lines;
  for (std::size_t i = 0; i < tallies.size(); ++i) {
    const tally& t = tallies[i];
    lines += formatted("%-36.100s %-11.24s %9lld %9.2f %% %10.2e %10.2e %11.4f %+8.3f %% %10s\n",
                       model.c_str(), (pairs[i].compute + "/" + pairs[i].kv).c_str(),
                       static_cast<long long>(t.positions()), 100 * t.same_argmax(), t.mean_kl(),
                       t.max_kl(), t.perplexity(), percent_change(t, 3), greedy_text(t).c_str());
  }
  return lines;
}

std::string markdown_header(const std::vector<type_pair>& pairs) {
  std::string names = "| model | positions | f32 perplexity |", rule = "|---|---|---|";
  for (const type_pair& pair : pairs) {
    names += " " + pair.compute + " / " + pair.kv + " |";
    rule += "---|";
  }
  return names + "\n" + rule + "\n";
}

std::string markdown_line(const std::string& model, const std::vector<tally>& tallies) {
  if (tallies.empty()) return {};
  std::string line =
      "| " + model +
      formatted(" | %lld | %.4f |", static_cast<long long>(tallies.front().positions()),
                tallies.front().reference_perplexity());
  for (const tally& t : tallies)
    line += formatted(" %.1f %%, %.0e (%.0e), %+.2f %% |", 100 * t.same_argmax(), t.mean_kl(),
                      t.max_kl(), percent_change(t, 2));
  return line + "\n";
}

} // namespace twill::bench
