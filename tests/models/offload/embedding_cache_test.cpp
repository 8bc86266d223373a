// The cache of an embedding table that is not on the device returns the table's rows unchanged,
// whichever rows were prefetched. Each block of rows is read once while it stays in the cache, and
// is requested before it is needed.
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "models/offload/streams/weight_stream.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/faulty_store.hpp"
#include "tests/models/support/golden_folder.hpp"

using namespace twill::models;
using namespace twill::test;
namespace gpu = twill::gpu;

namespace {

constexpr std::int64_t n_rows = 600, n_cols = 64, block_rows = 16;
/// The number of blocks that the cache holds at once: as many as a step has rows.
constexpr std::int32_t room = 8;

float value_at(std::int64_t row, std::int64_t col) {
  return static_cast<float>(row * n_cols + col);
}

using ids = std::vector<std::int32_t>;

/// A table of f32 on disk or host, and in part on the device where `shares` say so.
struct streamed_table {
  explicit streamed_table(offload::shares shares, double link_bytes_per_second = 0)
      : faults(std::make_shared<store_faults>()) {
    gpu::weight_source source;
    source.kind = gpu::weight_kind::f32;
    source.rows = n_rows;
    source.cols = n_cols;
    std::vector<float> values(n_rows * n_cols);
    for (std::int64_t i = 0; i < n_rows * n_cols; ++i)
      values[static_cast<std::size_t>(i)] = value_at(i / n_cols, i % n_cols);
    source.dense_row = [&](std::int64_t r) -> const void* {
      return &values[static_cast<std::size_t>(r * n_cols)];
    };
    auto packed = gpu::pack_on_host(dev, source, "table");
    REQUIRE(packed.ok());
    table = std::move(packed).value();
    offload::offload_options options;
    options.weights = shares;
    options.link_bytes_per_second = link_bytes_per_second;
    options.io_threads = 2;
    options.open_store = [this]() -> result<std::unique_ptr<offload::disk_store>> {
      return std::unique_ptr<offload::disk_store>(std::make_unique<faulty_store>(faults));
    };
    auto opened = offload::weight_stream::open(dev, options);
    REQUIRE(opened.ok());
    stream = std::move(opened).value();
    // The table is cut into parts of as many rows as a layer has, here 96.
    source.rows = 96;
    auto layer = gpu::pack_on_host(dev, source, "layer");
    REQUIRE(layer.ok());
    first_layer = std::move(layer).value();
    REQUIRE(stream->add_group({&first_layer}).ok());
    REQUIRE(stream->add_table(table, false, parts).ok());
    auto cache = stream->rows_of(table, parts, room);
    REQUIRE(cache.ok());
    rows = std::move(cache).value();
    auto memory = dev.allocate(room * n_cols * sizeof(float), "rows");
    REQUIRE(memory.ok());
    out = std::move(memory).value();
  }

  std::int64_t reads() const { return faults->reads; }
  /// Waits until `n` reads were made. Returns whether there were exactly `n`.
  bool reads_become(std::int64_t n) const {
    for (int i = 0; i < 2000 && reads() < n; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return reads() == n;
  }
  result<twill::nothing> get(const ids& wanted) {
    return rows->rows(dev, wanted,
                      gpu::view_2d(out.data(), gpu::dtype::f32,
                                   static_cast<std::int64_t>(wanted.size()), n_cols));
  }
  bool gets(const ids& wanted) {
    if (!get(wanted).ok()) return false;
    std::vector<float> fetched(wanted.size() * n_cols);
    dev.download(fetched.data(), out.data(), fetched.size() * sizeof(float));
    for (std::size_t i = 0; i < wanted.size(); ++i)
      for (std::int64_t c = 0; c < n_cols; ++c)
        if (fetched[i * n_cols + static_cast<std::size_t>(c)] != value_at(wanted[i], c))
          return false;
    return true;
  }

  gpu::device& dev = shared_device();
  std::shared_ptr<store_faults> faults;
  gpu::packed_matrix table, first_layer;
  std::vector<offload::table_part> parts;
  std::unique_ptr<offload::weight_stream> stream;
  std::unique_ptr<offload::embedding_cache> rows;
  gpu::buffer out;
};

ids first_of_blocks(std::int32_t from, std::int32_t to) {
  ids all;
  for (std::int32_t b = from; b < to; ++b)
    all.push_back(static_cast<std::int32_t>(b * block_rows));
  return all;
}

} // namespace

TEST_CASE("blocks of rows that a step needs count as moved, those still there do not",
          "[embedding_cache]") {
  for (const bool on_disk : {true, false}) {
    streamed_table t({0, on_disk ? 0 : 100});
    const auto before = t.stream->stats();
    const std::int64_t block = t.table.layout().bytes(1);
    const auto moved = [&] {
      const auto stats = t.stream->stats();
      CHECK((on_disk ? stats.host_bytes : stats.disk_bytes) == 0);
      return on_disk ? stats.disk_bytes - before.disk_bytes : stats.host_bytes - before.host_bytes;
    };
    CHECK(t.gets({1, 2, 15, 1}));
    CHECK(moved() == block);
    CHECK(t.gets({1, 17, 33, 99}));
    CHECK(moved() == 4 * block);
    CHECK(t.gets({98, 34, 3}));
    CHECK(moved() == 4 * block);
    // Eight other blocks fill the cache, and the least recently used blocks are evicted.
    CHECK(t.gets(first_of_blocks(20, 28)));
    CHECK(moved() == 12 * block);
    CHECK(t.gets({1}));
    CHECK(moved() == 13 * block);
    CHECK(t.gets(first_of_blocks(10, 18)));
    CHECK(t.gets({10 * block_rows}));
    CHECK(t.gets({1}));
    CHECK(moved() == 22 * block);
    CHECK(t.gets({10 * block_rows}));
    CHECK(moved() == 22 * block);
  }
}

TEST_CASE("blocks of rows take at least the time that a simulated link says", "[embedding_cache]") {
  constexpr double bytes_per_second = 2e6;
  for (const bool on_disk : {true, false}) {
    streamed_table t({0, on_disk ? 0 : 100}, bytes_per_second);
    const auto began = std::chrono::steady_clock::now();
    CHECK(t.gets(first_of_blocks(0, room)));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    const auto bytes = static_cast<double>(room * t.table.layout().bytes(1));
    CHECK(took.count() > 0.9 * bytes / bytes_per_second);
  }
}

TEST_CASE("rows are the table's own, whatever was expected", "[embedding_cache]") {
  std::mt19937 random(4);
  const auto some = [&](std::size_t n) {
    ids out;
    for (std::size_t i = 0; i < n; ++i)
      out.push_back(static_cast<std::int32_t>(random() % n_rows));
    return out;
  };
  for (const offload::shares shares : {offload::shares{0, 0}, {40, 20}, {30, 70}, {50, 0}}) {
    streamed_table t(shares);
    for (int round = 0; round < 60; ++round) {
      const ids expected = some(random() % 60);
      t.rows->prefetch(expected);
      // Takes some of the expected rows in order, then rows that were not prefetched.
      for (std::size_t at = 0; at + room <= expected.size() && random() % 4 != 0; at += room) {
        const auto first = expected.begin() + static_cast<std::ptrdiff_t>(at);
        REQUIRE(t.gets(ids(first, first + room)));
      }
      REQUIRE(t.gets(some(1 + random() % room)));
    }
    t.rows->prefetch(some(room)); // still being read at the end of the scope
  }
}

TEST_CASE("what is expected sets out at once, and is read once", "[embedding_cache]") {
  streamed_table t({0, 0});
  t.rows->prefetch(first_of_blocks(0, 20));
  CHECK(t.reads_become(room)); // as many as the cache has room for
  CHECK(t.gets(first_of_blocks(0, 3)));
  CHECK(t.reads_become(room + 3)); // three more take the room of blocks 0 to 2
  CHECK(t.gets(first_of_blocks(3, 11)));
  CHECK(t.gets(first_of_blocks(11, 19)));
  CHECK(t.reads_become(20));
  // A second prefetch replaces the first one. Its block 18 is still in the cache.
  t.rows->prefetch(ids{18 * block_rows, 30 * block_rows});
  CHECK(t.reads_become(21));
  CHECK(t.gets({18 * block_rows + 5, 30 * block_rows + 1}));
  CHECK(t.reads() == 21);
  // Needed rows get room even if blocks that are still expected fill the whole cache.
  t.rows->prefetch(first_of_blocks(21, 29));
  CHECK(t.reads_become(29));
  CHECK(t.gets(first_of_blocks(1, 9)));
}

TEST_CASE("a row that could not be read fails the step that needs it, and is read anew",
          "[embedding_cache]") {
  streamed_table t({0, 0});
  t.faults->flip_read = t.reads();
  t.rows->prefetch(ids{5, 40, 300});
  CHECK(t.reads_become(3));
  t.faults->flip_read = -1;
  CHECK(t.gets({599})); // other rows can be read
  const auto failed = t.get({40});
  REQUIRE_FALSE(failed.ok());
  CHECK(failed.code() == errc::bad_format);
  CHECK(failed.detail().find("rows from 32 of the embedding") != std::string::npos);
  CHECK(t.gets({40}));
}
