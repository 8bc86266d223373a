#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/stream_parser.hpp>
#include <boost/json/value.hpp>

#include <array>
#include <fstream>
#include <numeric>
#include <stdexcept>

#include "tools/twill-bench/engine/random.hpp"
#include "tools/twill-bench/engine/workload.hpp"

namespace twill::bench {
namespace {

namespace json = boost::json;

// vLLM's limits for this data set, in tokens.
constexpr std::int32_t min_tokens = 4;
constexpr std::int32_t max_prompt_tokens = 1024;
constexpr std::int32_t max_total_tokens = 2048;

json::value read_json(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("--dataset-path must be a readable file, got " + path);
  json::stream_parser parser;
  std::array<char, 1 << 16> block{};
  boost::system::error_code error;
  while (file && !error) {
    file.read(block.data(), block.size());
    parser.write(block.data(), static_cast<std::size_t>(file.gcount()), error);
  }
  if (!error) parser.finish(error);
  if (error) throw std::runtime_error(path + " is no JSON: " + error.message());
  return parser.release();
}

const json::string* turn(const json::value& entry, std::size_t index) {
  const auto* object = entry.if_object();
  const auto* list = object ? object->if_contains("conversations") : nullptr;
  const auto* turns = list ? list->if_array() : nullptr;
  if (!turns || index >= turns->size()) return nullptr;
  const auto* one = (*turns)[index].if_object();
  const auto* value = one ? one->if_contains("value") : nullptr;
  return value ? value->if_string() : nullptr;
}

/// The number of tokens by the server's tokenizer, or an estimate of four bytes per token without
/// it.
std::int32_t count_tokens(const std::string& text, token_service& tokens, bool& estimated) {
  if (!estimated)
    if (const auto ids = tokens.tokenize(text)) return static_cast<std::int32_t>(ids->size());
  estimated = true;
  return static_cast<std::int32_t>(text.size() / 4 + 1);
}

} // namespace

workload sharegpt_workload(const workload_source& from, std::size_t n_prompts,
                           std::uint64_t stream) {
  const json::value data = read_json(from.options.dataset_path);
  const auto* entries = data.if_array();
  if (!entries || entries->empty())
    throw std::runtime_error(from.options.dataset_path + " must hold a list of conversations");
  std::vector<std::size_t> order(entries->size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  random_source random(from.options.seed * 0x9e3779b97f4a7c15ull + stream);
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1],
              order[static_cast<std::size_t>(random.between(0, std::int64_t(i) - 1))]);

  workload out;
  bool estimated = false;
  for (const std::size_t index : order) {
    if (out.prompts.size() == n_prompts || from.cancelled()) break;
    const json::string* question = turn((*entries)[index], 0);
    const json::string* answer = turn((*entries)[index], 1);
    if (!question || !answer) continue;
    prompt one;
    one.text.assign(question->data(), question->size());
    one.input_tokens = count_tokens(one.text, from.tokens, estimated);
    one.output_tokens = from.options.lengths_given ? from.options.output_tokens
                                                   : count_tokens({answer->data(), answer->size()},
                                                                  from.tokens, estimated);
    if (one.input_tokens < min_tokens || one.output_tokens < min_tokens ||
        one.input_tokens > max_prompt_tokens ||
        one.input_tokens + one.output_tokens > max_total_tokens)
      continue;
    out.prompts.push_back(std::move(one));
  }
  if (out.prompts.empty())
    throw std::runtime_error(from.options.dataset_path + " holds no usable conversation");
  const std::size_t n_distinct = out.prompts.size();
  while (out.prompts.size() < n_prompts)
    out.prompts.push_back(out.prompts[out.prompts.size() - n_distinct]);
  if (n_distinct < n_prompts)
    out.remarks.push_back("only " + std::to_string(n_distinct) +
                          " conversations fit: they are repeated (prefix caches will see it)");
  if (estimated)
    out.remarks.push_back("the server has no /tokenize: lengths are guessed from bytes");
  return out;
}

} // namespace twill::bench
