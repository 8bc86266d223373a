// kv_fingerprint, by which a daemon recognises KV blocks on disk that it can use, changes with
// everything that the bytes of a block depend on.
#include "actors/executor/kv_fingerprint.hpp"

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "models/checkpoint/mapped_file.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/temp_folder.hpp"

using namespace twill;
using actors::kv_fingerprint;
namespace fs = std::filesystem;

namespace {

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
  fs::last_write_time(path, fs::file_time_type(std::chrono::hours(10)));
}

std::string print_of(const std::vector<std::string>& paths,
                     const models::decoder_options& options = {},
                     const gpu::device_info& device = {}) {
  models::model model;
  for (const auto& path : paths)
    model.files.push_back(models::mapped_file::open(path).value());
  return kv_fingerprint(model, options, device);
}

} // namespace

TEST_CASE("another file, size, time or content of a model is another model", "[actors]") {
  const test::temp_folder at;
  const std::string file = at.path() + "/model.gguf";
  const std::string bytes(100'000, 'a');
  std::set<std::string> seen;
  const auto is_new = [&](const std::vector<std::string>& paths) {
    const auto print = print_of(paths);
    CHECK(print_of(paths) == print);
    return seen.insert(print).second;
  };
  write(file, bytes);
  CHECK(is_new({file}));
  write(file, bytes);
  CHECK_FALSE(is_new({file}));
  write(file, bytes + "a");
  CHECK(is_new({file}));
  for (const std::size_t place : {std::size_t{0}, std::size_t{50'000}, bytes.size() - 1000}) {
    auto changed = bytes;
    changed[place] = 'b';
    write(file, changed);
    CHECK(is_new({file}));
  }
  write(file, bytes);
  fs::last_write_time(file, fs::file_time_type(std::chrono::hours(11)));
  CHECK(is_new({file}));

  const std::string second = at.path() + "/second.gguf";
  write(second, "2");
  CHECK(is_new({second}));
  CHECK(is_new({file, second}));
}

TEST_CASE("other types, block sizes and devices are other KV", "[actors]") {
  std::set<std::string> seen;
  models::decoder_options options;
  gpu::device_info device;
  const auto is_new = [&] { return seen.insert(print_of({}, options, device)).second; };
  CHECK(is_new());
  options.block_tokens += 16;
  CHECK(is_new());
  options.compute = gpu::compute_type::int8;
  CHECK(is_new());
  options.compute = gpu::compute_type::bf16;
  CHECK(is_new());
  const auto was = options.kv_type;
  for (const auto type : {gpu::dtype::f16, gpu::dtype::bf16, gpu::dtype::f32})
    if (type != was) {
      options.kv_type = type;
      CHECK(is_new());
    }
  for (std::string* part : {&device.kind, &device.name, &device.backend, &device.isa}) {
    *part += "x";
    CHECK(is_new());
  }
}
