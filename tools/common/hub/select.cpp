#include "tools/common/hub/select.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>

#include "config/base/units.hpp"
#include "models/checkpoint/gguf/split_name.hpp"
#include "models/checkpoint/json.hpp"
#include "tools/common/endpoint.hpp"

namespace twill::tools::hub {
namespace {

/// The files of a folder that models/open and models/text read.
constexpr std::array folder_texts{
    "config.json",      "generation_config.json",  "tokenizer_config.json", "tokenizer.json",
    "tokenizer.model",  "special_tokens_map.json", "added_tokens.json",     "vocab.json",
    "merges.txt",       "chat_template.jinja",     "chat_template.json",    "quantize_config.json",
    "quant_config.json"};
/// The default quantisation, which is also that of llama.cpp and Ollama.
constexpr const char* usual_quantisation = "Q4_K_M";

std::string upper(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return out;
}

bool is_at_root(const std::string& path) {
  return path.find('/') == path.npos;
}

bool is_folder_text(const std::string& path) {
  const std::string_view templates = "additional_chat_templates/";
  if (path.starts_with(templates))
    return path.ends_with(".jinja") && path.find('/', templates.size()) == path.npos;
  return is_at_root(path) &&
         (path.ends_with(".tiktoken") ||
          std::find(folder_texts.begin(), folder_texts.end(), path) != folder_texts.end());
}

/// Finds the only .safetensors file at the root of the repository, whatever its name, because
/// quantisation tools give it arbitrary names. Returns nullptr when there are several or none.
const repo_file* only_safetensors(const repo_listing& listing) {
  const repo_file* only = nullptr;
  for (const auto& file : listing.files) {
    if (!is_at_root(file.path) || !file.path.ends_with(".safetensors")) continue;
    if (only != nullptr) return nullptr;
    only = &file;
  }
  return only;
}

bool has_folder(const repo_listing& listing) {
  return listing.find("config.json") != nullptr &&
         (index_of(listing) != nullptr || listing.find("model.safetensors") != nullptr ||
          listing.find("pytorch_model.bin") != nullptr || only_safetensors(listing) != nullptr);
}

/// A GGUF model and its files, in the order of its parts.
struct gguf_model {
  std::string name; ///< the path without part number and ".gguf"
  std::vector<repo_file> files;
  std::size_t parts = 1;

  std::int64_t bytes() const {
    std::int64_t sum = 0;
    for (const auto& file : files)
      sum += file.bytes;
    return sum;
  }
};

/// Whether a GGUF file is no model: image projectors (mmproj) and importance matrices of
/// quantisation tools (imatrix).
bool is_beside_a_model(const std::string& path) {
  const auto name = upper(path.substr(path.rfind('/') + 1));
  return name.find("MMPROJ") != name.npos || name.find("IMATRIX") != name.npos;
}

std::vector<gguf_model> gguf_models(const repo_listing& listing) {
  std::map<std::string, gguf_model> by_name;
  for (const auto& file : listing.files) {
    if (!upper(file.path).ends_with(".GGUF") || is_beside_a_model(file.path)) continue;
    const auto part = models::gguf::parse_split_name(file.path);
    const auto name = part ? part->prefix : file.path.substr(0, file.path.size() - 5);
    auto& model = by_name[name];
    model.name = name;
    if (part) model.parts = static_cast<std::size_t>(part->count);
    model.files.push_back(file);
  }
  std::vector<gguf_model> models;
  for (auto& [name, model] : by_name) {
    std::sort(model.files.begin(), model.files.end(),
              [](const auto& a, const auto& b) { return a.path < b.path; });
    models.push_back(std::move(model));
  }
  return models;
}

/// Whether the label is a complete part of the name: "Q4_K" is not one in "a-Q4_K_M".
bool has_label(const std::string& name, const std::string& label) {
  const auto text = upper(name), wanted = upper(label);
  for (auto at = text.find(wanted); at != text.npos; at = text.find(wanted, at + 1)) {
    const auto end = at + wanted.size();
    const bool begins = at == 0 || std::string_view("-_./").find(text[at - 1]) != text.npos;
    const bool ends = end == text.size() || std::string_view("-./").find(text[end]) != text.npos;
    if (begins && ends) return true;
  }
  return false;
}

/// One line "  NAME.gguf, 4.68 GiB" for each model.
std::string list_of(const std::vector<gguf_model>& models) {
  constexpr std::size_t most_shown = 40;
  std::string lines;
  for (std::size_t i = 0; i < std::min(models.size(), most_shown); ++i)
    lines += "\n  " + models[i].files.front().path + ", " + format_bytes(models[i].bytes());
  if (models.size() > most_shown)
    lines += "\n  and " + std::to_string(models.size() - most_shown) + " more";
  return lines;
}

std::string named_as(const model_reference& named, const std::string& file) {
  model_reference example = named;
  example.file = file;
  return example.text();
}

std::vector<gguf_model> with_label(const std::vector<gguf_model>& models,
                                   const std::string& label) {
  std::vector<gguf_model> found;
  for (const auto& model : models)
    if (has_label(model.name, label)) found.push_back(model);
  if (found.size() < 2) return found;
  // "UD-Q4_K_XL" is another recipe for the quantisation "Q4_K_XL". A model with "UD" is chosen only
  // when `label`, the quantisation that the user named, contains "UD" or when no other model
  // matches.
  std::vector<gguf_model> plain;
  for (const auto& model : found)
    if (has_label(label, "UD") || !has_label(model.name, "UD-" + label)) plain.push_back(model);
  return plain.empty() ? found : plain;
}

const gguf_model& choose_gguf(const std::vector<gguf_model>& models, const model_reference& named,
                              std::vector<gguf_model>& chosen) {
  if (named.names_a_file()) {
    for (const auto& model : models)
      for (const auto& file : model.files)
        if (file.path == named.file) return model;
    throw client_error(named.text() + ": the repository has no such model, but" + list_of(models));
  }
  if (!named.file.empty()) {
    chosen = with_label(models, named.file);
    if (chosen.empty())
      throw client_error(named.text() + ": the repository has no model of that quantisation, but" +
                         list_of(models));
  } else {
    if (models.size() == 1) return models.front();
    chosen = with_label(models, usual_quantisation);
  }
  if (chosen.size() == 1) return chosen.front();
  const auto& listed = chosen.empty() ? models : chosen;
  throw client_error(named.text() + ": name one of the " + std::to_string(listed.size()) +
                     " models in GGUF, for example " +
                     named_as(named, listed.front().files.front().path) + ":" + list_of(listed));
}

selection choose_gguf_files(const repo_listing& listing, const model_reference& named) {
  const auto models = gguf_models(listing);
  std::vector<gguf_model> chosen;
  const auto& model = choose_gguf(models, named, chosen);
  if (model.files.size() != model.parts)
    throw client_error(named.text() + ": " + model.name + " must have " +
                       std::to_string(model.parts) + " parts, the repository has " +
                       std::to_string(model.files.size()));
  return {true, {}, model.files};
}

} // namespace

const repo_file* index_of(const repo_listing& listing) {
  // This order is that of models/checkpoint/weight_files.
  if (const auto* index = listing.find("model.safetensors.index.json")) return index;
  if (listing.find("model.safetensors") != nullptr) return nullptr;
  return listing.find("pytorch_model.bin.index.json");
}

selection choose_files(const repo_listing& listing, const model_reference& named) {
  const auto models = gguf_models(listing);
  if (named.file.empty() && has_folder(listing)) {
    selection folder;
    for (const auto& file : listing.files)
      if (is_folder_text(file.path)) folder.texts.push_back(file);
    if (const auto* index = index_of(listing)) folder.texts.push_back(*index);
    return folder;
  }
  if (!models.empty()) return choose_gguf_files(listing, named);
  if (!named.file.empty())
    throw client_error(named.text() + ": the repository has no GGUF file; leave \":" + named.file +
                       "\" out for the model in its folder");
  throw client_error(
      named.text() +
      ": the repository has no model that twill reads: there must be config.json with "
      "model.safetensors(.index.json) or pytorch_model.bin(.index.json), or a .gguf file");
}

std::vector<repo_file> choose_weights(const repo_listing& listing, std::string_view index,
                                      const model_reference& named) {
  if (const auto* file = index_of(listing)) {
    const auto where = named.text() + ": " + file->path;
    const auto parsed = models::parse_json(index, where);
    if (!parsed.ok()) throw client_error(parsed.detail());
    const value* map = parsed.value().find("weight_map");
    if (map == nullptr || map->as_object() == nullptr || map->as_object()->empty())
      throw client_error(where + ": `weight_map` must be an object with tensors");
    std::set<std::string> shards;
    for (const auto& [tensor, shard] : *map->as_object())
      shards.insert(shard.as_string() == nullptr ? std::string() : *shard.as_string());
    std::vector<repo_file> weights;
    for (const auto& shard : shards) {
      const auto* found = listing.find(shard);
      if (found == nullptr || !is_at_root(shard))
        throw client_error(where + ": the shard \"" + shard + "\" is not in the repository");
      weights.push_back(*found);
    }
    return weights;
  }
  for (const char* name : {"model.safetensors", "pytorch_model.bin"})
    if (const auto* file = listing.find(name)) return {*file};
  return {*only_safetensors(listing)};
}

} // namespace twill::tools::hub
