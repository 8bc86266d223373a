// trace: reads recorded traces, which give the request times, lengths and shared prefixes of a real
// service.
#include <algorithm>
#include <fstream>
#include <optional>
#include <stdexcept>

#include "tools/twill-bench/engine/json_scan.hpp"
#include "tools/twill-bench/engine/random.hpp"
#include "tools/twill-bench/engine/workload.hpp"

namespace twill::bench {
namespace {

namespace js = json_scan;

// Number of prompt tokens that one hash id of Mooncake's traces stands for.
constexpr std::size_t block_tokens = 512;

/// Reads the time of a line, which may be a number with a decimal point.
std::optional<double> milliseconds(std::string_view raw) {
  if (raw.empty()) return std::nullopt;
  try {
    return std::stod(std::string(raw));
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

struct trace_line {
  double at_s = 0;
  std::int32_t input_tokens = 0, output_tokens = 0;
  std::vector<std::int32_t> blocks;
};

trace_line read_line(const std::string& text, const std::string& where) {
  const auto at = milliseconds(js::member(text, "timestamp"));
  const auto input = js::integer(js::member(text, "input_length"));
  const auto output = js::integer(js::member(text, "output_length"));
  if (!at || !input || !output || *at < 0 || *input < 1 || *output < 1)
    throw std::runtime_error(where +
                             ": must have timestamp >= 0, input_length >= 1 and "
                             "output_length >= 1, got " +
                             text.substr(0, 120));
  return {*at / 1e3, static_cast<std::int32_t>(*input), static_cast<std::int32_t>(*output),
          js::integers(js::member(text, "hash_ids"))};
}

std::vector<trace_line> read_trace(const std::string& path, std::size_t most) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::vector<trace_line> out;
  std::size_t number = 0;
  for (std::string line; out.size() < most && std::getline(file, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    out.push_back(read_line(line, path + ":" + std::to_string(number)));
  }
  if (out.empty()) throw std::runtime_error(path + " holds no request");
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.at_s < b.at_s; });
  return out;
}

/// The token ids of the prompt of one trace line: first the tokens of the blocks that its
/// `hash_ids` name, then tokens that only this prompt has.
std::vector<std::int32_t> ids_of(const trace_line& line, std::size_t number, std::uint64_t seed,
                                 std::pair<std::int32_t, std::int32_t> range) {
  const auto n_ids = static_cast<std::size_t>(line.input_tokens);
  std::vector<std::int32_t> ids;
  const auto fill = [&](std::uint64_t from, std::size_t until) {
    random_source random(from);
    while (ids.size() < std::min(until, n_ids))
      ids.push_back(static_cast<std::int32_t>(random.between(range.first, range.second)));
  };
  for (std::size_t b = 0; b < line.blocks.size(); ++b)
    fill(seed * 0x9e3779b97f4a7c15ull + 0xb10c000000000000ull + std::uint64_t(line.blocks[b]),
         (b + 1) * block_tokens);
  fill(seed * 0x9e3779b97f4a7c15ull + 0x0317000000000000ull + number, n_ids);
  return ids;
}

} // namespace

workload trace_workload(const workload_source& from, std::size_t n_prompts, std::uint64_t) {
  const serve_options& o = from.options;
  const auto lines = read_trace(o.dataset_path, n_prompts);
  const auto range = id_range(o, from.model);
  workload out;
  for (std::size_t i = 0; i < lines.size() && !from.cancelled(); ++i) {
    prompt one;
    one.input_tokens = lines[i].input_tokens;
    one.output_tokens = lines[i].output_tokens;
    one.ids = ids_of(lines[i], i, o.seed, range);
    if (!from.ids) {
      const auto text = from.tokens.detokenize(one.ids);
      if (!text)
        throw std::runtime_error("a trace needs a backend that takes ids, or a server with "
                                 "/detokenize");
      one.text = *text;
      one.ids.clear();
    }
    out.prompts.push_back(std::move(one));
    out.due_s.push_back((lines[i].at_s - lines.front().at_s) / o.trace_speed);
  }
  return out;
}

} // namespace twill::bench
