// table: accuracy figures for people: a line per model and pair of types, or Markdown with a line
// per model. Pure text.
#pragma once

#include <string>
#include <vector>

#include "tools/twill-bench/accuracy/compare.hpp"
#include "tools/twill-bench/accuracy/divergence.hpp"

namespace twill::bench {

std::string text_header();
/// One line per pair.
std::string text_lines(const std::string& model, const std::vector<type_pair>& pairs,
                       const std::vector<tally>& tallies);

/// Two lines: names and rule.
std::string markdown_header(const std::vector<type_pair>& pairs);
/// One line; each pair's cell is "same argmax, mean KL (largest KL), change of perplexity".
std::string markdown_line(const std::string& model, const std::vector<tally>& tallies);

} // namespace twill::bench
