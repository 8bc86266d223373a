// write: a recipe's checkpoint, streamed to disk with a few MB of memory.
//
// One thread per call. What was written is removed again on a failure or when `progress` says stop.
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

/// Hears bytes of weights written and to write; false stops.
using progress_function = std::function<bool(std::int64_t done, std::int64_t total)>;

struct write_options {
  file_format format = file_format::safetensors;
  std::int64_t max_shard_bytes = 5'000'000'000; ///< of weights per file; folders only
  std::string gguf_kind;                        ///< "Q4_0", ...; empty: the recipe's dtype
  progress_function progress;
};

struct written_file {
  std::string name;
  std::int64_t bytes = 0; ///< of weights
};

/// The files of weights that would be written, and their sizes.
result<std::vector<written_file>> weight_files(const recipe& r, const write_options& options);

/// A folder (safetensors, PyTorch) or a file (GGUF) at `path`, which must not exist yet.
result<nothing> write_checkpoint(const recipe& r, const std::string& path,
                                 const write_options& options);

// ---- parts that the formats share --------------------------------------------------------------

/// Consecutive tensors of one file.
struct shard {
  std::size_t first = 0;
  std::size_t end = 0;
  std::int64_t bytes = 0;
};
std::vector<shard> cut_shards(const std::vector<planned_tensor>& tensors, std::int64_t most);

/// "model-00001-of-00002.safetensors", or "model.safetensors" when it is the only one.
std::string shard_name(const std::string& stem, const std::string& extension, std::size_t index,
                       std::size_t count);

/// What a writer of one format works with.
struct write_job {
  const recipe& made;
  std::vector<planned_tensor> tensors;
  output_folder& out;
  const write_options& options;
  std::int64_t total = 0;
  std::int64_t done = 0;

  /// Streams a tensor; `sink` gets its bytes in pieces of about 1 MB.
  result<nothing> stream(const planned_tensor& t,
                         const std::function<result<nothing>(std::span<const std::byte>)>& sink);
  result<nothing> advance(std::int64_t bytes);
};

result<nothing> write_safetensors(write_job& job);
result<nothing> write_pytorch(write_job& job);
/// `gguf_bytes` is what the tensors take in that kind.
result<nothing> write_gguf(write_job& job, const std::string& name);
result<std::int64_t> gguf_bytes(const recipe& r, const write_options& options);

/// weight_map of an index file.
result<nothing> write_index(write_job& job, const std::vector<shard>& shards,
                            const std::string& stem, const std::string& extension);

} // namespace twill::synth
