// table: formats accuracy figures for people, either as one text line per model and pair of compute
// type and KV type, or as Markdown with one line per model. The functions are pure.
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

/// The two lines of the heading: column names, and the line below them.
std::string markdown_header(const std::vector<type_pair>& pairs);
/// One line of the table. The cell of each pair of types has the form "same argmax, mean KL
/// (largest KL), change of perplexity".
std::string markdown_line(const std::string& model, const std::vector<tally>& tallies);

} // namespace twill::bench
