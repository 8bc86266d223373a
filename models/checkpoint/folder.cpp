#include "models/checkpoint/folder.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "models/checkpoint/json.hpp"
#include "models/checkpoint/mapped_file.hpp"
#include "models/checkpoint/quant/checkpoint.hpp"
#include "models/checkpoint/quant/config.hpp"
#include "models/checkpoint/quoted.hpp"
#include "models/checkpoint/weight_files.hpp"

namespace twill::models {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t max_config_bytes = std::int64_t{16} << 20;

/// A folder, and the name of a file in the folder if the given path was the path of that file.
struct place {
  std::string folder;
  std::string file;
};

result<place> find_place(const std::string& path) {
  std::error_code failed;
  const fs::file_status status = fs::status(path, failed);
  if (fs::is_directory(status)) return place{path, {}};
  if (!fs::is_regular_file(status))
    return failure{errc::file_unreadable,
                   path + ": " + (failed ? failed.message() : "neither a file nor a folder")};
  const fs::path whole(path);
  const std::string name = whole.filename().string();
  if (!name.ends_with(".safetensors") && !name.ends_with(".bin") && !name.ends_with(".json"))
    return failure{errc::unsupported, path + ": must be a model folder, or a .safetensors, .bin "
                                             "or .json file in one"};
  return place{whole.has_parent_path() ? whole.parent_path().string() : ".", name};
}

using file_list = std::vector<std::shared_ptr<const mapped_file>>;

/// Reads an optional file that must hold a JSON object. If `files` is not null, appends the file to
/// it.
result<std::optional<value>> read_optional(const std::string& folder, const char* name,
                                           file_list* files = nullptr) {
  const std::string path = (fs::path(folder) / name).string();
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::optional<value>{};
  std::shared_ptr<const mapped_file> file;
  auto read = read_json_file(path, max_config_bytes, &file);
  if (!read.ok()) return read.error();
  if (files != nullptr) files->push_back(std::move(file));
  if (read.value().as_object() == nullptr)
    return failure{errc::bad_format, path + ": must be a JSON object"};
  return std::optional<value>(std::move(read).value());
}

result<std::optional<quant::quant_config>>
find_quantization(const std::string& folder, const value& config, file_list& files) {
  using found = std::optional<quant::quant_config>;
  const auto as_found = [](result<quant::quant_config> read) -> result<found> {
    if (!read.ok()) return read.error();
    return found(std::move(read).value());
  };
  if (const value* object = config.find("quantization_config"); object && !object->is_null())
    return as_found(
        quant::read_config(*object, folder + "/config.json: `quantization_config`", std::nullopt));
  const std::pair<const char*, quant::method> others[] = {
      {"quantize_config.json", quant::method::gptq}, {"quant_config.json", quant::method::awq}};
  for (const auto& [name, method] : others) {
    auto object = read_optional(folder, name, &files);
    if (!object.ok()) return object.error();
    if (object.value())
      return as_found(quant::read_config(*object.value(), folder + "/" + name, method));
  }
  return found{};
}

} // namespace

struct folder::impl {
  std::string path;
  value config;
  std::optional<value> generation_config;
  std::optional<value> tokenizer_config;
  std::shared_ptr<const checkpoint> weights;
  std::string quantization;
  file_list files;
};

folder::folder() : impl_(std::make_unique<impl>()) {}
folder::~folder() = default;

result<std::shared_ptr<const folder>> folder::open(const std::string& path) {
  auto at = find_place(path);
  if (!at.ok()) return at.error();
  std::shared_ptr<folder> opened(new folder);
  impl& f = *opened->impl_;
  f.path = at.value().folder;

  auto config = read_optional(f.path, "config.json", &f.files);
  if (!config.ok()) return config.error();
  if (!config.value()) {
    std::error_code unreadable;
    const bool adapter = std::filesystem::exists(f.path + "/adapter_config.json", unreadable);
    return failure{errc::file_unreadable,
                   f.path + (adapter ? ": the folder must hold a whole model, got a LoRA adapter; "
                                       "merge it into its base model (merge_and_unload() of peft "
                                       "writes a folder that can be served)"
                                     : ": the folder has no config.json")};
  }
  f.config = std::move(*config.value());
  const std::pair<const char*, std::optional<value>*> others[] = {
      {"generation_config.json", &f.generation_config},
      {"tokenizer_config.json", &f.tokenizer_config}};
  for (const auto& [name, into] : others) {
    auto read = read_optional(f.path, name);
    if (!read.ok()) return read.error();
    *into = std::move(read).value();
  }

  auto quantization = find_quantization(f.path, f.config, f.files);
  if (!quantization.ok()) return quantization.error();
  auto table = read_weights(f.path, at.value().file);
  if (!table.ok()) return table.error();
  for (auto& file : table.value()->files())
    f.files.push_back(std::move(file));
  auto shown = quant::show_as_matrices(table.value(), quantization.value());
  if (!shown.ok()) return in_file(f.path, shown.error());
  f.weights = std::move(shown).value();
  if (quantization.value()) f.quantization = quantization.value()->name();
  return std::shared_ptr<const folder>(std::move(opened));
}

const std::string& folder::path() const {
  return impl_->path;
}
const value& folder::config() const {
  return impl_->config;
}
const value* folder::generation_config() const {
  return impl_->generation_config ? &*impl_->generation_config : nullptr;
}
const value* folder::tokenizer_config() const {
  return impl_->tokenizer_config ? &*impl_->tokenizer_config : nullptr;
}
std::shared_ptr<const checkpoint> folder::weights() const {
  return impl_->weights;
}
std::string folder::quantization() const {
  return impl_->quantization;
}

const std::vector<std::shared_ptr<const mapped_file>>& folder::files() const {
  return impl_->files;
}

} // namespace twill::models
