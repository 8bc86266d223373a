#include "tools/twill-bench/accuracy/candidate.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include <boost/json.hpp>

#include "models/checkpoint/folder.hpp"
#include "models/families/registry.hpp"
#include "models/model.hpp"

namespace twill::bench {
namespace {

namespace json = boost::json;
namespace fs = std::filesystem;
using models::errc;

constexpr const char* golden_file = "golden.json";

bool append_ids(const json::object& prompt, const char* key, std::vector<std::int32_t>& ids) {
  const json::value* list = prompt.if_contains(key);
  if (list == nullptr || !list->is_array()) return false;
  for (const json::value& id : list->get_array()) {
    if (!id.is_int64()) return false;
    const std::int64_t n = id.get_int64();
    ids.push_back(n < 0 || n > INT32_MAX ? -1 : static_cast<std::int32_t>(n));
  }
  return true;
}

models::result<std::vector<token_sequence>> read_golden(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return models::failure{errc::file_unreadable, path + " cannot be read"};
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  boost::system::error_code error;
  const json::value root = json::parse(text, error);
  if (error) return models::failure{errc::bad_format, path + ": " + error.message()};
  const json::value* prompts =
      root.is_object() ? root.get_object().if_contains("prompts") : nullptr;
  if (prompts == nullptr || !prompts->is_array())
    return models::failure{errc::bad_format, path + ": `prompts` must be a list"};
  std::vector<token_sequence> sequences;
  for (const json::value& prompt : prompts->get_array()) {
    token_sequence s;
    const bool has_ids = prompt.is_object() && append_ids(prompt.get_object(), "ids", s.ids);
    s.prompt_length = static_cast<std::int32_t>(s.ids.size());
    if (!has_ids || !append_ids(prompt.get_object(), "greedy_ids", s.ids))
      return models::failure{errc::bad_format,
                             path + ": each prompt must have lists `ids` and `greedy_ids`"};
    sequences.push_back(std::move(s));
  }
  return sequences;
}

models::result<candidate> checked(candidate s) {
  if (s.sequences.empty())
    return models::failure{errc::bad_format, s.name + ": there are no tokens to run"};
  for (const token_sequence& sequence : s.sequences)
    if (const std::string why = reason_to_refuse(sequence, s.spec); !why.empty())
      return models::failure{errc::bad_token, s.name + ": " + why};
  return s;
}

} // namespace

models::result<candidate> open_golden(const std::string& folder, const std::string& name) {
  auto sequences = read_golden(folder + "/" + golden_file);
  if (!sequences.ok()) return sequences.error();
  auto opened = models::folder::open(folder);
  if (!opened.ok()) return opened.error();
  candidate s;
  s.name = name;
  s.weights = opened.value()->weights();
  auto spec = models::families::spec_of(opened.value()->config(), *s.weights);
  if (!spec.ok()) return models::failure{spec.error().code, folder + ": " + spec.detail()};
  s.spec = std::move(spec).value();
  s.sequences = std::move(sequences).value();
  return checked(std::move(s));
}

models::result<candidate> open_with_text(const std::string& path, const std::string& text) {
  auto opened = models::open_model(path);
  if (!opened.ok()) return opened.error();
  const models::model& m = *opened.value();
  models::encode_options options;
  options.add_special = true;
  auto ids = m.text->encode(text, options);
  if (!ids.ok()) return models::failure{ids.error().code, path + ": " + ids.detail()};
  candidate s;
  s.name = fs::path(path).filename().string();
  s.spec = m.spec;
  s.weights = m.weights;
  const auto window = static_cast<std::ptrdiff_t>(std::max(m.spec.context_length, 2));
  for (auto at = ids.value().begin(), end = ids.value().end(); end - at >= 2;) {
    const auto n = std::min(end - at, window);
    s.sequences.push_back({{at, at + n}, static_cast<std::int32_t>(n)});
    at += n;
  }
  return checked(std::move(s));
}

std::vector<std::string> golden_folders_below(const std::string& root) {
  std::vector<std::string> found;
  if (fs::exists(fs::path(root) / golden_file)) found.push_back(root);
  for (const auto& entry : fs::recursive_directory_iterator(root))
    if (entry.is_directory() && fs::exists(entry.path() / golden_file))
      found.push_back(entry.path().string());
  std::sort(found.begin(), found.end());
  return found;
}

} // namespace twill::bench
