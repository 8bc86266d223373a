#include "models/checkpoint/weight_files.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "models/checkpoint/json.hpp"
#include "models/checkpoint/pytorch/read.hpp"
#include "models/checkpoint/quoted.hpp"
#include "models/checkpoint/safetensors/read.hpp"

namespace twill::models {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t max_index_bytes = std::int64_t{64} << 20;

bool exists(const std::string& folder, const std::string& name) {
  std::error_code ignored;
  return fs::exists(fs::path(folder) / name, ignored);
}

std::string join(const std::string& folder, const std::string& name) {
  return (fs::path(folder) / name).string();
}

bool ends_with(const std::string& text, std::string_view end) {
  return std::string_view(text).ends_with(end);
}

result<nothing> read_file(tensor_table& table, const std::string& path) {
  return ends_with(path, ".safetensors") ? safetensors::read_into(table, path)
                                         : pytorch::read_into(table, path);
}

/// The contents of an index file, which names the shard that holds each tensor.
struct shard_index {
  std::string path;
  std::map<std::string, std::string> shard_of; ///< tensor -> file name

  bool lists(const std::string& file) const {
    return std::any_of(shard_of.begin(), shard_of.end(),
                       [&](const auto& entry) { return entry.second == file; });
  }
};

/// True for a plain file name. The shards in an index must have plain names, so that the index
/// cannot refer to files outside its folder.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos &&
         (ends_with(name, ".safetensors") || ends_with(name, ".bin"));
}

result<shard_index> read_index(const std::string& path) {
  auto parsed = read_json_file(path, max_index_bytes);
  if (!parsed.ok()) return parsed.error();
  const value* map = parsed.value().find("weight_map");
  if (map == nullptr || map->as_object() == nullptr || map->as_object()->empty())
    return failure{errc::bad_format, path + ": `weight_map` must be an object with tensors"};
  shard_index index{path, {}};
  for (const auto& [tensor, file] : *map->as_object()) {
    if (file.as_string() == nullptr || !is_plain_name(*file.as_string()))
      return failure{errc::bad_format,
                     path + ": `weight_map`: the shard of " + quoted_name(tensor) +
                         " must be the name of a .safetensors or .bin file in the folder" +
                         (file.as_string() ? ", got " + quoted_name(*file.as_string()) : "")};
    index.shard_of.emplace(tensor, *file.as_string());
  }
  return index;
}

result<nothing> read_shards(tensor_table& table, const std::string& folder,
                            const shard_index& index) {
  std::set<std::string> shards;
  for (const auto& [tensor, file] : index.shard_of)
    shards.insert(file);
  for (const std::string& file : shards) {
    if (!exists(folder, file))
      return failure{errc::file_unreadable,
                     index.path + ": the shard " + quoted_name(file) + " is not in the folder"};
    if (auto read = read_file(table, join(folder, file)); !read.ok()) return read;
  }
  for (const auto& [tensor, file] : index.shard_of) {
    const stored_tensor* found = table.peek(tensor);
    if (found == nullptr)
      table.note_absent(tensor); // loading fails if the model needs this tensor
    else if (found->file->path() != join(folder, file))
      return failure{errc::missing_tensor, index.path + ": tensor " + quoted_name(tensor) +
                                               " must be in " + quoted_name(file) + ", it is in " +
                                               found->file->path()};
  }
  return nothing{};
}

/// Returns the name of the folder's only .safetensors file. This finds the files of quantisers that
/// do not use one of the standard names.
result<std::string> only_weight_file(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed))
    if (ends_with(it->path().filename().string(), ".safetensors"))
      names.push_back(it->path().filename().string());
  if (names.size() == 1) return names.front();
  const std::string looked_for = "model.safetensors(.index.json), pytorch_model.bin(.index.json) "
                                 "or one file *.safetensors";
  return failure{errc::file_unreadable, folder + ": no weights: there must be " + looked_for +
                                            ", found " + std::to_string(names.size()) +
                                            " of the last"};
}

} // namespace

result<std::shared_ptr<const tensor_table>> read_weights(const std::string& folder,
                                                         const std::string& file) {
  const auto table = std::make_shared<tensor_table>();
  const bool file_is_weights = ends_with(file, ".safetensors") || ends_with(file, ".bin");
  std::string single = file_is_weights ? file : "";
  for (const char* base : {"model.safetensors", "pytorch_model.bin"}) {
    const std::string index_name = std::string(base) + ".index.json";
    if (exists(folder, index_name)) {
      auto index = read_index(join(folder, index_name));
      if (!index.ok()) return index.error();
      if (!file_is_weights || index.value().lists(file)) {
        auto read = read_shards(*table, folder, index.value());
        if (!read.ok()) return read.error();
        return std::shared_ptr<const tensor_table>(table);
      }
    }
    if (single.empty() && exists(folder, base)) single = base;
    if (!single.empty() && !file_is_weights) break;
  }
  if (single.empty()) {
    auto only = only_weight_file(folder);
    if (!only.ok()) return only.error();
    single = only.value();
  }
  if (auto read = read_file(*table, join(folder, single)); !read.ok()) return read.error();
  return std::shared_ptr<const tensor_table>(table);
}

} // namespace twill::models
