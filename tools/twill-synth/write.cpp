#include "tools/twill-synth/write.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "config/base/json_text.hpp"
#include "config/base/units.hpp"
#include "models/synth/configs.hpp"
#include "models/synth/fill.hpp"
#include "models/synth/tokenizer_files.hpp"

namespace twill::synth {
namespace {

constexpr std::int64_t chunk_bytes = 1 * mib;

/// Disk space reserved for headers and text files in addition to the weights.
constexpr std::int64_t spare_bytes = 32 * mib;

result<nothing> write_text_files(const recipe& r, output_folder& out) {
  std::vector<text_file> files = tokenizer_files(r);
  files.push_back({"config.json", to_json(make_config(r), 2)});
  files.push_back({"generation_config.json", to_json(make_generation_config(r), 2)});
  if (auto extra = make_quantization_file(r))
    files.push_back({extra->first, to_json(extra->second, 2)});
  for (const text_file& file : files)
    if (auto done = out.add_whole(file.name, file.bytes); !done.ok()) return done;
  return nothing{};
}

result<nothing> check_room(const output_folder& out, std::int64_t bytes, const std::string& path) {
  const std::int64_t room = out.free_bytes();
  if (room >= bytes + spare_bytes) return nothing{};
  return failure{errc::file_unwritable, path + ": needs " + format_bytes(bytes + spare_bytes) +
                                            " of disk space, only " + format_bytes(room) +
                                            " are free"};
}

result<nothing> write_folder(const recipe& r, const std::string& path,
                             const write_options& options) {
  auto folder = output_folder::create(path);
  if (!folder.ok()) return folder.error();
  write_job job{r, plan_tensors(r), folder.value(), options, 0, 0};
  job.total = total_bytes(job.tensors);
  if (auto room = check_room(folder.value(), job.total, path); !room.ok()) return room;
  if (auto texts = write_text_files(r, folder.value()); !texts.ok()) return texts;
  auto weights =
      options.format == file_format::pytorch ? write_pytorch(job) : write_safetensors(job);
  if (!weights.ok()) return weights;
  folder.value().keep();
  return nothing{};
}

result<nothing> write_single(const recipe& r, const std::string& path,
                             const write_options& options) {
  auto bytes = gguf_bytes(r, options);
  if (!bytes.ok()) return bytes.error();
  auto folder = output_folder::around(path);
  if (!folder.ok()) return folder.error();
  write_job job{r, {}, folder.value(), options, bytes.value(), 0};
  if (auto room = check_room(folder.value(), job.total, path); !room.ok()) return room;
  if (auto done = write_gguf(job, std::filesystem::path(path).filename().string()); !done.ok())
    return done;
  folder.value().keep();
  return nothing{};
}

} // namespace

std::vector<shard> cut_shards(const std::vector<planned_tensor>& tensors, std::int64_t most) {
  std::vector<shard> shards;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::int64_t bytes = tensors[i].bytes();
    if (shards.empty() || shards.back().bytes + bytes > most) shards.push_back({i, i, 0});
    shards.back().end = i + 1;
    shards.back().bytes += bytes;
  }
  return shards;
}

std::string shard_name(const std::string& stem, const std::string& extension, std::size_t index,
                       std::size_t count) {
  if (count == 1) return stem + extension;
  char number[48];
  std::snprintf(number, sizeof number, "-%05zu-of-%05zu", index + 1, count);
  return stem + number + extension;
}

result<nothing> write_job::advance(std::int64_t bytes) {
  done += bytes;
  if (options.progress && !options.progress(done, total))
    return failure{errc::file_unwritable, "stopped; what was written is removed"};
  return nothing{};
}

result<nothing>
write_job::stream(const planned_tensor& t,
                  const std::function<result<nothing>(std::span<const std::byte>)>& sink) {
  const tensor_filler filler(t, model.seed);
  // Packed codes are produced for 16 rows at a time, so a chunk has a multiple of 16 rows.
  const std::int64_t rows = std::max<std::int64_t>(16, chunk_bytes / t.row_bytes() / 16 * 16);
  std::vector<std::byte> chunk(static_cast<std::size_t>(std::min(rows, t.rows()) * t.row_bytes()));
  for (std::int64_t row = 0; row < t.rows(); row += rows) {
    const std::int64_t n = std::min(rows, t.rows() - row);
    const std::span<std::byte> bytes(chunk.data(), static_cast<std::size_t>(n * t.row_bytes()));
    filler.fill(row, n, bytes.data());
    if (auto sunk = sink(bytes); !sunk.ok()) return sunk;
  }
  return nothing{};
}

result<nothing> write_index(write_job& job, const std::vector<shard>& shards,
                            const std::string& stem, const std::string& extension) {
  if (shards.size() == 1) return nothing{};
  value_object map;
  for (std::size_t s = 0; s < shards.size(); ++s)
    for (std::size_t i = shards[s].first; i < shards[s].end; ++i)
      map.emplace_back(job.tensors[i].name, shard_name(stem, extension, s, shards.size()));
  std::sort(map.begin(), map.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  const value index =
      value_object{{"metadata", value_object{{"total_size", total_bytes(job.tensors)}}},
                   {"weight_map", std::move(map)}};
  return job.out.add_whole(stem + extension + ".index.json", to_json(index, 1));
}

result<std::vector<written_file>> weight_files(const recipe& r, const write_options& options) {
  std::vector<written_file> files;
  if (options.format == file_format::gguf) {
    auto bytes = gguf_bytes(r, options);
    if (!bytes.ok()) return bytes.error();
    files.push_back({"", bytes.value()});
    return files;
  }
  const bool pytorch = options.format == file_format::pytorch;
  const std::vector<shard> shards = cut_shards(plan_tensors(r), options.max_shard_bytes);
  for (std::size_t i = 0; i < shards.size(); ++i)
    files.push_back({shard_name(pytorch ? "pytorch_model" : "model",
                                pytorch ? ".bin" : ".safetensors", i, shards.size()),
                     shards[i].bytes});
  return files;
}

result<nothing> write_checkpoint(const recipe& r, const std::string& path,
                                 const write_options& options) {
  if (auto valid = validate(r); !valid.ok()) return valid;
  return options.format == file_format::gguf ? write_single(r, path, options)
                                             : write_folder(r, path, options);
}

} // namespace twill::synth
