#include "tools/twill/model_parts.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>

#include "config/base/value.hpp"
#include "models/checkpoint/checkpoint.hpp"
#include "models/checkpoint/folder.hpp"
#include "models/checkpoint/gguf/file.hpp"
#include "models/families/registry.hpp"
#include "models/open/model_place.hpp"
#include "models/synth/dummy.hpp"
#include "models/text/template_sources.hpp"
#include "models/text/tokenizer/folder_tokenizer.hpp"
#include "models/text/tokenizer/gguf_tokenizer.hpp"

namespace twill::tools {
namespace {

/// A member of config.json as one line of text; empty when it is absent or no plain value.
std::string text_of(const value& config, const char* key) {
  const value* v = config.find(key);
  if (v == nullptr) return {};
  if (const auto* list = v->as_list(); list != nullptr && !list->empty()) v = &list->front();
  if (const auto* s = v->as_string()) return *s;
  if (const auto* i = v->as_int()) return std::to_string(*i);
  return {};
}

void add_config(const value& config, model_parts& parts) {
  for (const char* key : {"model_type", "architectures", "torch_dtype", "transformers_version"})
    if (std::string text = text_of(config, key); !text.empty())
      parts.facts.emplace_back(key, std::move(text));
  if (const value* packed = config.find("quantization_config"))
    parts.facts.emplace_back("quantization_config", text_of(*packed, "quant_method") + ", " +
                                                        text_of(*packed, "bits") + " bits, group " +
                                                        text_of(*packed, "group_size"));
}

void add_weights(const models::checkpoint& weights, model_parts& parts) {
  std::map<std::string, weight_share> by_kind;
  for (const models::tensor_info& t : weights.tensors()) {
    weight_share& share = by_kind[t.type];
    share.kind = t.type;
    ++share.tensors;
    share.bytes += t.bytes;
  }
  for (auto& [kind, share] : by_kind)
    parts.weights.push_back(std::move(share));
  std::sort(parts.weights.begin(), parts.weights.end(),
            [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
}

void read_dummy(model_parts& parts) {
  parts.format = "dummy, made from a seed";
  const auto opened = models::synth::open_dummy(parts.path);
  if (!opened.ok()) return parts.refused.push_back(opened.detail());
  add_config(opened.value().config, parts);
  add_weights(*opened.value().weights, parts);
  parts.has_own_template = opened.value().tokenizer_config.find("chat_template") != nullptr;
}

void read_gguf(const std::string& path, model_parts& parts) {
  const auto file = models::gguf::file::open(path);
  if (!file.ok()) return parts.refused.push_back(file.detail());
  const models::gguf::metadata& meta = file.value()->meta();
  parts.format = "GGUF v" + std::to_string(file.value()->version());
  if (const auto n = file.value()->files().size(); n > 1)
    parts.format += ", " + std::to_string(n) + " files";
  for (const char* key :
       {"general.architecture", "general.name", "tokenizer.ggml.model", "tokenizer.ggml.pre"})
    if (const auto* text = meta.find<std::string>(key)) parts.facts.emplace_back(key, *text);
  add_weights(*file.value(), parts);
  parts.has_own_template = !models::gguf_template_sources(meta).main.empty();
  const auto text = models::make_gguf_tokenizer(meta);
  if (!text.ok()) parts.refused.push_back(parts.path + ": " + text.detail());
}

void read_folder(model_parts& parts) {
  parts.format = "Hugging Face folder";
  const auto opened = models::folder::open(parts.path);
  if (!opened.ok()) return parts.refused.push_back(opened.detail());
  const models::folder& folder = *opened.value();
  add_config(folder.config(), parts);
  add_weights(*folder.weights(), parts);
  const value* text_config = folder.tokenizer_config();
  parts.has_own_template =
      !models::folder_template_sources(folder.path(), text_config).main.empty();
  const auto text =
      models::make_folder_tokenizer({.path = folder.path(),
                                     .hints = models::families::tokenizer_hints_of(folder.config()),
                                     .config = &folder.config(),
                                     .tokenizer_config = text_config,
                                     .generation_config = folder.generation_config()});
  if (!text.ok()) parts.refused.push_back(text.detail());
}

} // namespace

model_parts read_parts(const std::string& path) {
  model_parts parts;
  parts.path = path;
  const auto place = models::find_model(path);
  if (!place.ok())
    parts.refused.push_back(place.detail());
  else if (place.value().kind == models::model_kind::dummy)
    read_dummy(parts);
  else if (place.value().kind == models::model_kind::gguf)
    read_gguf(place.value().path, parts);
  else
    read_folder(parts);
  return parts;
}

} // namespace twill::tools
