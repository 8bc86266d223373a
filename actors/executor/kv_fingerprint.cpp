#include "actors/executor/kv_fingerprint.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <vector>

#include "models/offload/streams/checksum.hpp"

namespace twill::actors {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t n_samples = 64;

std::string text_of_file(const fs::path& path) {
  std::string text = "\n" + path.filename().string();
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat found = {};
  if (fd >= 0 && ::fstat(fd, &found) == 0) {
    text += " " + std::to_string(found.st_size) + " " + std::to_string(found.st_mtim.tv_sec) + "." +
            std::to_string(found.st_mtim.tv_nsec);
    std::array<char, 4096> sample{};
    std::uint64_t sum = 0;
    for (std::int64_t i = 0; i < n_samples; ++i) {
      const auto n = ::pread(fd, sample.data(), sample.size(), found.st_size / n_samples * i);
      if (n > 0) sum = sum * 31 + models::offload::checksum(sample.data(), n);
    }
    text += " " + std::to_string(sum);
  }
  if (fd >= 0) ::close(fd);
  return text;
}

} // namespace

std::string kv_fingerprint(const std::string& model_path, const models::decoder_options& options,
                           const gpu::device_info& device) {
  std::string text = std::string("twill ") + TWILL_VERSION + "\n" +
                     std::string(gpu::name_of(options.compute)) + " " +
                     std::string(gpu::name_of(options.kv_type)) + " " +
                     std::to_string(options.block_tokens) + "\n" + device.kind + " " + device.name +
                     " " + device.backend + " " + device.isa;
  std::error_code failed;
  std::vector<fs::path> files;
  if (fs::is_directory(model_path, failed)) {
    for (const auto& file : fs::directory_iterator(model_path, failed))
      if (file.is_regular_file(failed)) files.push_back(file.path());
    std::sort(files.begin(), files.end());
  } else if (fs::exists(model_path, failed)) {
    files.emplace_back(model_path);
  } else {
    text += "\n" + model_path; // a preset
  }
  for (const fs::path& path : files)
    text += text_of_file(path);
  return text;
}

} // namespace twill::actors
