#include "actors/executor/kv_fingerprint.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "actors/kv/cache_scope.hpp"
#include "models/checkpoint/mapped_file.hpp"
#include "models/offload/streams/checksum.hpp"

namespace twill::actors {

namespace {

constexpr std::size_t n_samples = 64;
constexpr std::size_t sample_bytes = 4096;

std::string text_of(const models::mapped_file& file) {
  const auto bytes = file.bytes();
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < n_samples; ++i) {
    const auto rest = bytes.subspan(bytes.size() / n_samples * i);
    const auto sample = rest.first(std::min(rest.size(), sample_bytes));
    sum = sum * 31 +
          models::offload::checksum(sample.data(), static_cast<std::int64_t>(sample.size()));
  }
  return "\n" + std::filesystem::path(file.path()).filename().string() + " " +
         std::to_string(bytes.size()) + " " + std::to_string(file.state().modified_ns) + " " +
         std::to_string(sum);
}

} // namespace

std::string kv_fingerprint(const models::model& model, const models::decoder_options& options,
                           const gpu::device_info& device) {
  std::string text = std::string("twill ") + TWILL_VERSION + "\n" +
                     std::string(gpu::name_of(options.compute)) + " " +
                     std::string(gpu::name_of(options.kv_type)) + " " +
                     std::to_string(options.block_tokens) + "\n" + device.kind + " " + device.name +
                     " " + device.backend + " " + device.isa;
  if (model.files.empty()) text += "\n" + model.path; // a preset with random weights has no files
  for (const auto& file : model.files) {
    text += text_of(*file);
    if (file->written_since())
      text += "\nwritten to while it was open " + std::to_string(draw_hash_key().first);
  }
  return text;
}

} // namespace twill::actors
