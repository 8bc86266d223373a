// write: writes the checkpoint that a recipe (models/synth/recipe.hpp) describes to disk, using
// only a few MB of memory.
//
// A call does all its work on the thread that makes it. On a failure, or when `progress` returns
// false, everything written is removed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/synth/plan.hpp"
#include "tools/twill-synth/names.hpp"
#include "tools/twill-synth/output_files.hpp"

namespace twill::synth {

enum class file_format : std::uint8_t { safetensors, pytorch, gguf };

/// Called with the written and the total bytes of weights; returning false stops the writer.
using progress_function = std::function<bool(std::int64_t done, std::int64_t total)>;

struct write_options {
  file_format format = file_format::safetensors;
  std::int64_t max_shard_bytes = 5'000'000'000; ///< limit on the bytes of weights per file of a
                                                ///< folder
  std::string gguf_kind;                        ///< a kind such as "Q4_0"; empty: the recipe's
                                                ///< dtype
  progress_function progress;
};

struct written_file {
  std::string name;
  std::int64_t bytes = 0; ///< bytes of weights
};

/// Returns the weight files that would be written, and their sizes.
result<std::vector<written_file>> weight_files(const recipe& r, const write_options& options);

/// Writes a folder (safetensors, PyTorch) or a file (GGUF) at `path`, which must not exist.
result<nothing> write_checkpoint(const recipe& r, const std::string& path,
                                 const write_options& options);

// ---- parts that the formats share --------------------------------------------------------------

/// Consecutive tensors that are stored in one file.
struct shard {
  std::size_t first = 0;
  std::size_t end = 0;
  std::int64_t bytes = 0;
};
std::vector<shard> cut_shards(const std::vector<planned_tensor>& tensors, std::int64_t most);

/// Returns a name such as "model-00001-of-00002.safetensors", or "model.safetensors" for a single
/// shard.
std::string shard_name(const std::string& stem, const std::string& extension, std::size_t index,
                       std::size_t count);

/// The arguments of one call of write_checkpoint() and its progress.
struct write_job {
  const recipe& model;
  std::vector<planned_tensor> tensors;
  output_folder& out;
  const write_options& options;
  std::int64_t total = 0;
  std::int64_t done = 0;

  /// Passes the bytes of a tensor to `sink` in chunks of about 1 MB.
  result<nothing> stream(const planned_tensor& t,
                         const std::function<result<nothing>(std::span<const std::byte>)>& sink);
  result<nothing> advance(std::int64_t bytes);
};

result<nothing> write_safetensors(write_job& job);
result<nothing> write_pytorch(write_job& job);
/// gguf_bytes() is the size of the tensors in the chosen kind.
result<nothing> write_gguf(write_job& job, const std::string& name);
result<std::int64_t> gguf_bytes(const recipe& r, const write_options& options);

/// Writes the index file of the shards. Does nothing when there is only one shard.
result<nothing> write_index(write_job& job, const std::vector<shard>& shards,
                            const std::string& stem, const std::string& extension);

} // namespace twill::synth
