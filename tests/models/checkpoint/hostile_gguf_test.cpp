// Damaged GGUF files must end in an error or a correct load, never in a crash. The test is meant
// for AddressSanitizer, which catches reads past the heap.
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "models/checkpoint/gguf/file.hpp"
#include "models/families/registry.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/decoder_runner.hpp"
#include "tests/models/support/temp_file.hpp"
#include "tests/models/support/tiny_llama.hpp"

using namespace twill::models;
namespace gpu = twill::gpu;
namespace test = twill::test;

namespace {

/// Reads all dense bytes or all codes of a matrix.
double read_all(const gpu::weight_source& m) {
  double sum = 0;
  if (m.dense_row) {
    const std::int64_t bytes = m.cols * (m.kind == gpu::weight_kind::f32 ? 4 : 2);
    for (std::int64_t r = 0; r < m.rows; ++r)
      for (std::int64_t i = 0; i < bytes; ++i)
        sum += static_cast<const unsigned char*>(m.dense_row(r))[i];
    return sum;
  }
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(m.cols));
  std::vector<float> scales(static_cast<std::size_t>(m.cols / m.group)), offsets(scales.size());
  for (std::int64_t r = 0; r < m.rows; ++r) {
    m.grouped(r, {codes.data(), scales.data(), offsets.data()});
    for (const std::uint8_t c : codes)
      sum += c;
  }
  return sum;
}

/// Opens the file, reads all tensors, and runs the model if it is valid. Returns whether it ran.
bool open_and_run(const std::string& path) {
  auto opened = gguf::file::open(path);
  if (!opened.ok()) {
    CHECK_FALSE(opened.detail().empty());
    return false;
  }
  const gguf::file& file = *opened.value();
  double sum = 0;
  for (const tensor_info& t : file.tensors()) {
    if (auto m = file.matrix(t.name); m.ok()) sum += read_all(m.value());
    if (auto v = file.vector(t.name); v.ok()) sum += static_cast<double>(v.value().size());
  }
  CHECK(std::isfinite(sum));
  auto spec = families::gguf_spec_of(file.meta(), file);
  if (!spec.ok()) return false;
  decoder_options options;
  options.n_blocks = 4;
  options.max_step_tokens = 16;
  options.max_sequences = 2;
  options.max_logit_rows = 16;
  auto loaded = decoder::load(test::shared_device(), spec.value(), file, options, {});
  if (!loaded.ok()) return false;
  if (spec.value().vocab_size < 4 || spec.value().context_length < 16) return false;
  const std::vector<std::int32_t> tokens = {1, 2, 3}, positions = {0, 1, 2}, first = {0, 3},
                                  lengths = {3}, table = {2}, rows = {2};
  const auto logits =
      loaded.value()->forward({tokens, positions, first, lengths, table, 1, rows}).value();
  test::shared_device().fence();
  return logits.rows() == 1;
}

test::gguf_writer small_model() {
  test::tiny_llama m;
  m.hidden = 32;
  m.n_heads = 2;
  m.n_kv_heads = 1;
  m.mlp = 32;
  m.vocab = 16;
  m.n_layers = 1;
  m.q_kind = 2;
  m.v_kind = 1;
  return test::make_tiny_llama(m);
}

} // namespace

TEST_CASE("every truncation of a file is refused or loads", "[fuzz]") {
  const std::string whole = small_model().build();
  test::temp_file file(whole);
  REQUIRE(open_and_run(file.path()));
  for (std::size_t size = 1; size < whole.size(); size += size < 2600 ? 7 : 173) {
    CAPTURE(size);
    file.rewrite(whole.substr(0, size));
    // Only trailing padding may be missing from a file that still runs.
    if (open_and_run(file.path())) CHECK(size + 32 > whole.size());
  }
}

TEST_CASE("random bit flips end in an error or a load, never a crash", "[fuzz]") {
  const std::string whole = small_model().build();
  const std::size_t headers = whole.find("output_norm.weight") + 60;
  test::temp_file file(whole);
  std::mt19937 random(11);
  int ran = 0;
  for (int round = 0; round < 500; ++round) {
    std::string damaged = whole;
    const int flips = 1 + round % 4;
    for (int i = 0; i < flips; ++i) {
      // Most flips are in the headers, where they do the most damage.
      const std::size_t range = round % 5 == 0 ? whole.size() : headers;
      const std::size_t at = std::uniform_int_distribution<std::size_t>(0, range - 1)(random);
      damaged[at] =
          static_cast<char>(damaged[at] ^ (1 << std::uniform_int_distribution<int>(0, 7)(random)));
    }
    CAPTURE(round);
    file.rewrite(damaged);
    ran += open_and_run(file.path()) ? 1 : 0;
  }
  CHECK(ran > 40); // many flips only change a weight, a name or a number within its range
}

TEST_CASE("random 64-bit numbers in place of counts, lengths and offsets are refused or load",
          "[fuzz]") {
  const std::string whole = small_model().build();
  const std::size_t headers = whole.find("output_norm.weight") + 60;
  test::temp_file file(whole);
  std::mt19937_64 random(12);
  for (int round = 0; round < 300; ++round) {
    std::string damaged = whole;
    const std::size_t at = std::uniform_int_distribution<std::size_t>(0, headers - 8)(random);
    const std::uint64_t number = random() >> (random() % 64);
    damaged.replace(at, 8, test::raw(number));
    CAPTURE(round, at, number);
    file.rewrite(damaged);
    open_and_run(file.path());
  }
  SUCCEED();
}
