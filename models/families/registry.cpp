#include "models/families/registry.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "models/families/config_reader.hpp"

namespace twill::models::families {

// Each family is defined in the file of its name.
extern const family baichuan;
extern const family chatglm;
extern const family llama;
extern const family mistral;
extern const family opt;
extern const family qwen;
extern const family qwen2;
extern const family qwen3;

namespace {

constexpr const family* families[] = {&llama, &mistral, &opt,     &qwen,
                                      &qwen2, &qwen3,   &chatglm, &baichuan};

bool has(name_list names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Lists the names that all families have in `list`, as in "llama, qwen2".
std::string known_names(name_list family::*list) {
  std::string known;
  for (const family* f : families)
    for (const std::string_view name : f->*list)
      known.append(known.empty() ? "" : ", ").append(name);
  return known;
}

/// Returns the names in `architectures`; none if the key is absent or malformed.
std::vector<std::string> architectures_of(const value& config) {
  std::vector<std::string> names;
  const value* list = config.find("architectures");
  if (list == nullptr || list->as_list() == nullptr) return names;
  for (const value& name : *list->as_list())
    if (name.as_string() != nullptr) names.push_back(*name.as_string());
  return names;
}

failure unknown_config(const std::vector<std::string>& architectures, const value* type) {
  const std::string given =
      architectures.empty()
          ? "none, and `model_type` " + (type == nullptr ? "null" : describe(*type))
          : "\"" + architectures.front().substr(0, 100) + "\"";
  return {errc::unsupported, "config.json: `architectures` must name one of " +
                                 known_names(&family::architectures) + "; got " + given};
}

/// Reads the element type from `dtype` (named `torch_dtype` before transformers 4.56), or from the
/// flags `bf16` and `fp16` that Qwen's configs have.
std::optional<gpu::dtype> stated_type(const value& config) {
  for (const char* key : {"dtype", "torch_dtype"}) {
    const value* given = config.find(key);
    const std::string* word = given == nullptr ? nullptr : given->as_string();
    if (word == nullptr) continue;
    if (*word == "float32") return gpu::dtype::f32;
    if (*word == "float16") return gpu::dtype::f16;
    if (*word == "bfloat16") return gpu::dtype::bf16;
  }
  const auto is_set = [&](const char* key) {
    const value* given = config.find(key);
    return given != nullptr && given->as_bool() != nullptr && *given->as_bool();
  };
  if (is_set("bf16")) return gpu::dtype::bf16;
  if (is_set("fp16")) return gpu::dtype::f16;
  return std::nullopt;
}

} // namespace

std::span<const family* const> all() {
  return families;
}

const family* find(std::string_view name) {
  for (const family* f : families)
    if (f->name == name) return f;
  return nullptr;
}

result<const family*> family_of(const value& config) {
  const std::vector<std::string> architectures = architectures_of(config);
  for (const std::string& name : architectures)
    for (const family* f : families)
      if (has(f->architectures, name)) return f;
  const value* type = config.find("model_type");
  if (architectures.empty() && type != nullptr && type->as_string() != nullptr)
    for (const family* f : families)
      if (has(f->model_types, *type->as_string())) return f;
  return unknown_config(architectures, type);
}

result<const family*> gguf_family_of(const gguf::metadata& meta) {
  auto architecture = meta.get_string("general.architecture");
  if (!architecture.ok()) return architecture.error();
  for (const family* f : families)
    if (has(f->gguf_architectures, architecture.value())) return f;
  return failure{errc::unsupported, "`general.architecture` must be one of " +
                                        known_names(&family::gguf_architectures) + "; got \"" +
                                        architecture.value().substr(0, 100) + "\""};
}

result<model_spec> spec_of(const value& config, const checkpoint& weights) {
  auto found = family_of(config);
  if (!found.ok()) return found.error();
  auto spec = found.value()->folder_spec(config, weights);
  if (!spec.ok()) return spec;
  spec.value().family = found.value()->name;
  spec.value().stated_type = stated_type(config);
  return spec;
}

result<model_spec> gguf_spec_of(const gguf::metadata& meta, const checkpoint& weights) {
  auto found = gguf_family_of(meta);
  if (!found.ok()) return found.error();
  auto spec = found.value()->gguf_spec(meta, weights);
  if (spec.ok()) spec.value().family = found.value()->name;
  return spec;
}

tokenizer_hints tokenizer_hints_of(const value& config) {
  auto found = family_of(config);
  return found.ok() ? found.value()->tokenizer : tokenizer_hints{};
}

} // namespace twill::models::families
