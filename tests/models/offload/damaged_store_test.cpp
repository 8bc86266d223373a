// Weights, hidden states and KV that are stored on disk, where their bytes differ from what was
// written: each damaged byte is detected by the read that returns it, and every other read returns
// what was written.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "models/offload/streams/embedding_reader.hpp"
#include "models/offload/streams/hidden_stream.hpp"
#include "models/offload/streams/kv_backing.hpp"
#include "models/offload/streams/weight_placement.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/decoder_runner.hpp"
#include "tests/models/support/shown_store.hpp"
#include "tests/support/damage.hpp"

using namespace twill::models;
using namespace twill::test;
namespace gpu = twill::gpu;
using offload::tier;

namespace {

constexpr std::int64_t mib = std::int64_t{1} << 20;
constexpr std::int64_t page = 4096;
constexpr std::int64_t block_rows = 16;

/// Bytes that differ along a matrix and between matrices. No byte is zero.
std::uint8_t byte_at(std::int64_t number, std::int64_t at) {
  return static_cast<std::uint8_t>((at * 131 + (at >> 8) * 17 + number * 29) % 251 + 1);
}

/// A matrix in host memory with `panels` row panels of codes and scales.
gpu::packed_matrix quantised(std::int64_t panels, std::int64_t cols, std::int64_t number) {
  gpu::weight_source source;
  source.kind = gpu::weight_kind::grouped_u8;
  source.rows = panels * block_rows;
  source.cols = cols;
  source.group = 32;
  source.grouped = [cols, number](std::int64_t row, const gpu::grouped_row& out) {
    for (std::int64_t c = 0; c < cols; ++c)
      out.codes[c] = byte_at(number, row * cols + c);
    for (std::int64_t g = 0; g < cols / 32; ++g) {
      out.scales[g] = 1.0F + static_cast<float>(row % 97) / 128;
      out.offsets[g] = 0.5F + static_cast<float>(g);
    }
  };
  auto packed = gpu::pack_on_host(shared_device(), source, "matrix");
  REQUIRE(packed.ok());
  return std::move(packed).value();
}

/// One thread's part of the I/O, and device memory to read into.
struct transfer_fixture {
  explicit transfer_fixture(std::int64_t bytes)
      : dev(shared_device()), n(static_cast<std::size_t>(bytes)) {
    auto bounce = gpu::host_buffer::allocate(
        static_cast<std::size_t>(offload::transfer_bytes + 2 * page), "bounce");
    REQUIRE(bounce.ok());
    worker.bounce = std::move(bounce).value();
    auto memory = dev.allocate(n, "staging");
    REQUIRE(memory.ok());
    staging = std::move(memory).value();
  }
  unsigned char* at(std::int64_t offset) const {
    return static_cast<unsigned char*>(staging.data()) + offset;
  }
  std::string bytes(std::int64_t offset, std::int64_t count) const {
    std::string all(static_cast<std::size_t>(count), '\0');
    dev.download(all.data(), at(offset), all.size());
    return all;
  }

  gpu::device& dev;
  std::size_t n;
  gpu::buffer staging;
  offload::io_worker worker;
};

/// Describes what is wrong with the outcome of a read; `reaches`: the read has damaged bytes.
template <class T>
std::string verdict(const result<T>& outcome, bool reaches, const damage& d) {
  if (outcome.ok()) return reaches ? "it was not noticed" : "";
  if (!reaches) return "a read that it cannot reach failed: " + outcome.detail();
  const bool cut = outcome.code() == errc::file_unreadable;
  if (cut != (d.kind == damage_kind::cut)) return "the wrong code of an error: " + outcome.detail();
  if (outcome.detail().find("shown store") == std::string::npos ||
      outcome.detail().find(cut ? "ends" : "checksum") == std::string::npos)
    return "an error that does not say what is wrong: " + outcome.detail();
  return "";
}

/// Whether bytes [begin, end) of a store have changed or are missing.
bool reaches(const std::string& was, const std::string& is, std::int64_t begin, std::int64_t end) {
  const auto from = static_cast<std::size_t>(begin), n = static_cast<std::size_t>(end - begin);
  return is.size() < from + n || std::memcmp(was.data() + from, is.data() + from, n) != 0;
}

/// Groups of weights on the disk, one after the other, and the bytes expected of each group.
struct placed_groups {
  struct group {
    std::int32_t number;
    std::int64_t begin, end; ///< bytes of the store
    std::string image;       ///< what a staging buffer must hold
  };

  explicit placed_groups(std::int32_t verify_every) {
    options.verify_every = verify_every;
    placement =
        std::make_unique<offload::weight_placement>(shared_device(), &store, budget, options, link);
  }

  /// Adds a group on the disk. `panels`: the number of row panels of each of its matrices.
  void add(const std::vector<std::int64_t>& panels) {
    std::vector<offload::weight_segment> segments;
    std::string image;
    for (const std::int64_t n : panels) {
      matrices.push_back(
          std::make_unique<gpu::packed_matrix>(quantised(n, 224, std::ssize(matrices))));
      gpu::packed_matrix* one = matrices.back().get();
      segments.push_back({one, 0, one});
      std::string bytes(static_cast<std::size_t>(one->layout().bytes(n)), '\0');
      one->save_image(0, n, bytes.data());
      const std::string name = "group " + std::to_string(groups.size()) + ", image " +
                               std::to_string(segments.size() - 1);
      parts.push_back({name, bytes.size()});
      image += bytes;
    }
    const auto number = placement->add(segments, std::vector<tier>(segments.size(), tier::disk));
    REQUIRE(number.ok());
    const std::int64_t begin = groups.empty() ? 0 : groups.back().end;
    const std::int64_t end = begin + (std::ssize(image) + page - 1) / page * page;
    if (end - begin > std::ssize(image))
      parts.push_back({"padding of group " + std::to_string(groups.size()),
                       static_cast<std::size_t>(end - begin) - image.size()});
    groups.push_back({number.value(), begin, end, image});
  }

  offload::offload_options options;
  offload::link_pacer link{0};
  offload::tier_budget budget{std::int64_t{1} << 40};
  std::shared_ptr<shown_bytes> bytes = std::make_shared<shown_bytes>();
  shown_store store{bytes};
  std::unique_ptr<offload::weight_placement> placement;
  std::vector<std::unique_ptr<gpu::packed_matrix>> matrices;
  std::vector<group> groups;
  std::vector<sized> parts;
};

/// Adds groups that are smaller than, about as large as, and larger than whole transfers.
void add_all_sizes(placed_groups& placed) {
  const std::int64_t panel = quantised(1, 224, 0).layout().bytes(1);
  REQUIRE(panel < 2 * page);
  placed.add({1});
  placed.add({1, 2, 1});
  placed.add({mib / panel});
  placed.add({mib / panel + 1});
  placed.add({2 * mib / panel + 2, 3});
  placed.add({1});
}

} // namespace

TEST_CASE("each damaged byte of weights on the disk is noticed by the transfer that reads it",
          "[offload][damage]") {
  placed_groups placed(1);
  add_all_sizes(placed);
  transfer_fixture fixture(3 * mib);
  const std::string whole = placed.bytes->written;
  int refused = 0;
  const auto check = [&](const damage& d, const std::string& damaged) -> std::string {
    placed.bytes->instead = &damaged;
    for (const auto& g : placed.groups)
      for (std::int32_t n = 0; n * mib < g.end - g.begin; ++n) {
        const std::int64_t begin = g.begin + n * mib, end = std::min(begin + mib, g.end);
        // Only the transfers near the damage are tried.
        if (end + 2 * page < std::int64_t(d.at)) continue;
        if (begin > std::int64_t(d.at) + 2 * mib) break;
        const auto read = placed.placement->transfer(g.number, n, fixture.at(0), fixture.worker);
        const bool hit = reaches(whole, damaged, begin, end);
        refused += hit;
        if (auto wrong = verdict(read, hit, d); !wrong.empty()) return wrong;
        const auto of_image = std::min(end - g.begin, std::ssize(g.image)) - n * mib;
        if (!hit &&
            fixture.bytes(n * mib, of_image) != g.image.substr(static_cast<std::size_t>(n * mib),
                                                               static_cast<std::size_t>(of_image)))
          return "other weights than were written";
      }
    return "";
  };
  REQUIRE(check({damage_kind::bit, "none", 0}, whole) == "");
  CHECK(faults_after_damage(whole, parts_in_order(placed.parts), check) == "");
  CHECK(refused > 1000);
}

TEST_CASE("damaged weights are noticed at their first read, then within so many reads",
          "[offload][damage]") {
  constexpr std::int64_t transfers = 3;
  static constexpr std::int32_t every = 3;
  const auto made = [] {
    auto placed = std::make_unique<placed_groups>(every);
    placed->add({1});
    placed->add({2 * mib / quantised(1, 224, 0).layout().bytes(1) + 2});
    return placed;
  };
  transfer_fixture fixture(transfers * mib);
  damage_options options;
  options.cuts = false;
  options.sparse = true;
  const auto first = made();
  CHECK(
      faults_after_damage(
          first->bytes->written, parts_in_order(first->parts),
          [&](const damage&, const std::string& damaged) -> std::string {
            const auto placed = made(); // a new store that nothing has read
            const std::string whole = placed->bytes->written;
            placed->bytes->instead = &damaged;
            for (const auto& g : placed->groups) {
              std::vector<int> noticed(transfers, 0);
              // Reads the group pass after pass, as the ring does.
              for (std::int32_t pass = 0; pass <= every; ++pass)
                for (std::int32_t n = 0; n * mib < g.end - g.begin; ++n) {
                  const std::int64_t begin = g.begin + n * mib;
                  const bool hit = reaches(whole, damaged, begin, std::min(begin + mib, g.end));
                  const bool refused =
                      !placed->placement->transfer(g.number, n, fixture.at(0), fixture.worker).ok();
                  if (pass == 0 && refused != hit) return "the first read was not compared";
                  if (refused && !hit) return "a read that it cannot reach failed";
                  auto& later = noticed[static_cast<std::size_t>(n)];
                  later += pass > 0 && refused;
                  if (pass == every && hit && later == 0)
                    return "it was not noticed in " + std::to_string(every) + " later reads";
                }
            }
            return "";
          },
          options) == "");
}

TEST_CASE("each damaged byte of the embedding on the disk is noticed where its rows are read",
          "[offload][damage]") {
  // The table is cut into two parts, each with row blocks of codes and scales.
  constexpr std::int64_t panels = 9, first_panels = 5, cols = 2080;
  const gpu::packed_matrix table = quantised(panels, cols, 3);
  placed_groups placed(1);
  std::vector<offload::table_part> parts(2);
  std::vector<sized> in_store;
  std::vector<std::int64_t> codes_begin, scales_begin; // of each row block
  const gpu::image_layout layout = table.layout();
  REQUIRE(layout.scale_panel_bytes > 0);
  std::int64_t store_end = 0;
  for (int i = 0; i < 2; ++i) {
    auto& one = parts[static_cast<std::size_t>(i)];
    const std::int64_t first = i == 0 ? 0 : first_panels,
                       n = i == 0 ? first_panels : panels - first_panels;
    one.first_row = first * block_rows;
    one.matrix = table.like(n * block_rows);
    const auto group = placed.placement->add({{&table, first, &one.matrix}}, {tier::disk});
    REQUIRE(group.ok());
    one.group = group.value();
    const auto add = [&](const std::string& name, std::int64_t bytes) {
      in_store.push_back({name, static_cast<std::size_t>(bytes)});
    };
    for (std::int64_t b = 0; b < n; ++b) {
      codes_begin.push_back(store_end + b * layout.code_panel_bytes);
      scales_begin.push_back(store_end + layout.scales_at(n) + b * layout.scale_panel_bytes);
      add("codes of block " + std::to_string(first + b), layout.code_panel_bytes);
    }
    add("a gap", layout.scales_at(n) - n * layout.code_panel_bytes);
    for (std::int64_t b = 0; b < n; ++b)
      add("scales of block " + std::to_string(first + b), layout.scale_panel_bytes);
    const std::int64_t used = layout.scales_at(n) + n * layout.scale_panel_bytes;
    const std::int64_t taken = (layout.bytes(n) + page - 1) / page * page;
    add("padding", taken - used);
    store_end += taken;
  }
  const std::string whole = placed.bytes->written;
  const offload::embedding_reader reader(*placed.placement, parts, table);
  transfer_fixture fixture(layout.code_panel_bytes + layout.scale_panel_bytes);
  std::vector<std::string> wanted;
  for (std::int64_t b = 0; b < panels; ++b)
    wanted.push_back(
        whole.substr(static_cast<std::size_t>(codes_begin[static_cast<std::size_t>(b)]),
                     static_cast<std::size_t>(layout.code_panel_bytes)) +
        whole.substr(static_cast<std::size_t>(scales_begin[static_cast<std::size_t>(b)]),
                     static_cast<std::size_t>(layout.scale_panel_bytes)));
  int refused = 0;
  const auto check = [&](const damage& d, const std::string& damaged) -> std::string {
    placed.bytes->instead = &damaged;
    for (std::int64_t b = 0; b < panels; ++b) {
      const auto i = static_cast<std::size_t>(b);
      const auto hits = [&](std::int64_t begin, std::int64_t bytes) {
        // Reads are of whole pages, so that a read beside a cut may fail as well.
        const std::int64_t end =
            d.kind == damage_kind::cut ? offload::store_aligned(begin + bytes) : begin + bytes;
        return reaches(whole, damaged, begin, end);
      };
      const bool hit = hits(codes_begin[i], layout.code_panel_bytes) ||
                       hits(scales_begin[i], layout.scale_panel_bytes);
      refused += hit;
      const auto read =
          reader.read(b, fixture.at(0), fixture.at(layout.code_panel_bytes), fixture.worker);
      if (auto wrong = verdict(read, hit, d); !wrong.empty()) return wrong;
      if (!hit && fixture.bytes(0, reader.block_bytes()) != wanted[i])
        return "other rows than were written";
      if (!read.ok() && d.kind != damage_kind::cut &&
          read.detail().find("rows from " + std::to_string(b * block_rows) + " of") ==
              std::string::npos)
        return "an error that names other rows: " + read.detail();
    }
    return "";
  };
  REQUIRE(check({damage_kind::bit, "none", 0}, whole) == "");
  CHECK(faults_after_damage(whole, parts_in_order(in_store), check) == "");
  CHECK(refused > 1000);
}

namespace {

/// KV of two layers and two micro-batches on the disk, all blocks written.
struct written_kv {
  static constexpr std::int32_t n_layers = 2, n_batches = 2, n_blocks = 6;

  written_kv() {
    kv.kv = {0, 0};
    kv.shape.type = gpu::dtype::f32;
    kv.shape.n_blocks = n_blocks;
    kv.shape.n_kv_heads = 3;
    kv.shape.block_tokens = 16;
    kv.shape.head_dim = 40;
    kv.sequences = 2;
    kv.n_layers = n_layers;
    kv.n_batches = n_batches;
    options.verify_every = 1;
    options.open_store = [this]() -> result<std::unique_ptr<offload::disk_store>> {
      return std::unique_ptr<offload::disk_store>(std::make_unique<shown_store>(bytes));
    };
    auto made = offload::kv_backing::create(kv, options);
    REQUIRE(made.ok());
    backing = std::move(made).value();
    stride = offload::kv_strides(kv).stored;
  }

  std::int64_t segment_bytes() const { return n_blocks * stride; }
  /// Calls `each` with every extent that moves the segment's blocks.
  template <class Each>
  void for_each_extent(offload::transfer_direction direction, Each each) {
    for (std::int32_t layer = 0; layer < n_layers; ++layer)
      for (std::int32_t batch = 0; batch < n_batches; ++batch)
        for (const auto& task : backing->tasks_of(layer, {{0, n_blocks}}, direction))
          for (const auto& extent : task)
            each(layer, batch, extent);
  }

  offload::kv_stream_options kv;
  offload::offload_options options;
  std::shared_ptr<shown_bytes> bytes = std::make_shared<shown_bytes>();
  std::unique_ptr<offload::kv_backing> backing;
  std::int64_t stride = 0;
};

} // namespace

TEST_CASE("each damaged byte of KV on the disk is noticed by the read that brings its page",
          "[offload][damage]") {
  written_kv written;
  transfer_fixture fixture(written.segment_bytes());
  // Writes one block at a time, with bytes that differ within and between segments.
  std::string pattern(static_cast<std::size_t>(written.segment_bytes()), '\0');
  std::vector<sized> parts;
  for (std::int32_t layer = 0; layer < written_kv::n_layers; ++layer)
    for (std::int32_t batch = 0; batch < written_kv::n_batches; ++batch)
      for (std::int32_t b = 0; b < written_kv::n_blocks; ++b) {
        for (std::size_t i = 0; i < pattern.size(); ++i)
          pattern[i] = static_cast<char>(byte_at(layer * 2 + batch, std::int64_t(i)));
        fixture.dev.upload(fixture.at(0), pattern.data(), pattern.size());
        for (const auto& task :
             written.backing->tasks_of(layer, {{b, 1}}, offload::transfer_direction::to_backing))
          for (const auto& extent : task)
            REQUIRE(written.backing
                        ->copy(layer, batch, fixture.at(0), extent,
                               offload::transfer_direction::to_backing, fixture.worker)
                        .ok());
        parts.push_back({"block " + std::to_string(b) + " of layer " + std::to_string(layer) +
                             ", micro-batch " + std::to_string(batch),
                         static_cast<std::size_t>(written.stride)});
      }
  const std::string whole = written.bytes->written;
  int refused = 0;
  const auto check = [&](const damage& d, const std::string& damaged) -> std::string {
    written.bytes->instead = &damaged;
    std::string wrong;
    written.for_each_extent(
        offload::transfer_direction::to_device,
        [&](std::int32_t layer, std::int32_t batch, const offload::kv_backing::extent& e) {
          if (!wrong.empty()) return;
          const std::int64_t begin =
              (std::int64_t{layer} * written_kv::n_batches + batch) * written.segment_bytes() +
              e.offset;
          const bool hit = reaches(whole, damaged, begin, begin + e.bytes);
          refused += hit;
          const auto read =
              written.backing->copy(layer, batch, fixture.at(0), e,
                                    offload::transfer_direction::to_device, fixture.worker);
          wrong = verdict(read, hit, d);
          if (wrong.empty() && !hit &&
              fixture.bytes(e.offset, e.bytes) !=
                  whole.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(e.bytes)))
            wrong = "other KV than was written";
        });
    return wrong;
  };
  REQUIRE(check({damage_kind::bit, "none", 0}, whole) == "");
  CHECK(faults_after_damage(whole, parts_in_order(parts), check) == "");
  CHECK(refused > 1000);
}

TEST_CASE("each damaged byte of hidden states on the disk is noticed when its state is needed",
          "[offload][damage]") {
  // Neither the last transfer of a state nor its last page is full.
  constexpr std::int64_t state_bytes = 2 * mib + 5 * page + 20;
  constexpr std::int32_t n_batches = 2, chunks = 2;
  offload::hidden_options hidden;
  hidden.hidden = {0, 0};
  hidden.state_bytes = state_bytes;
  hidden.n_batches = n_batches;
  hidden.chunks = chunks;
  hidden.buffers = 2;
  gpu::device& dev = shared_device();
  const auto bytes = std::make_shared<shown_bytes>();
  offload::offload_options options;
  options.io_threads = 1;
  options.open_store = [&]() -> result<std::unique_ptr<offload::disk_store>> {
    return std::unique_ptr<offload::disk_store>(std::make_unique<shown_store>(bytes));
  };
  const auto pattern = [](offload::hidden_state of) {
    std::string all(static_cast<std::size_t>(state_bytes), '\0');
    for (std::size_t i = 0; i < all.size(); ++i)
      all[i] = static_cast<char>(byte_at(of.batch * chunks + of.chunk, std::int64_t(i)));
    return all;
  };
  std::vector<std::string> patterns;
  for (std::int32_t n = 0; n < n_batches * chunks; ++n)
    patterns.push_back(pattern({n / chunks, n % chunks}));
  /// Makes a stream that has written every state. A failed copy ends a stream.
  const auto made = [&] {
    bytes->instead = nullptr;
    auto stream = offload::hidden_stream::create(dev, hidden, options);
    REQUIRE(stream.ok());
    for (std::int32_t batch = 0; batch < n_batches; ++batch)
      for (std::int32_t chunk = 0; chunk < chunks; ++chunk) {
        const offload::hidden_state one{batch, chunk};
        const auto at = stream.value()->acquire(one, state_bytes, true);
        REQUIRE(at.ok());
        const auto& all = patterns[static_cast<std::size_t>(batch * chunks + chunk)];
        dev.upload(at.value(), all.data(), all.size());
        stream.value()->release(one, state_bytes, false);
      }
    // Uses both buffers at once, so that neither keeps a state.
    for (std::int32_t chunk = 0; chunk < 2; ++chunk)
      REQUIRE(stream.value()->acquire({0, chunk}, state_bytes, false).ok());
    for (std::int32_t chunk = 0; chunk < 2; ++chunk)
      stream.value()->release({0, chunk}, state_bytes, true);
    return std::move(stream).value();
  };
  const std::int64_t room = (state_bytes + page - 1) / page * page;
  std::vector<sized> parts;
  for (int n = 0; n < n_batches * chunks; ++n)
    parts.insert(parts.end(), {{"state " + std::to_string(n), std::size_t{state_bytes}},
                               {"padding", std::size_t(room - state_bytes)}});
  auto stream = made();
  const std::string whole = bytes->written;
  REQUIRE(std::ssize(whole) == room * n_batches * chunks);
  damage_options sparse;
  sparse.sparse = true;
  int refused = 0;
  CHECK(faults_after_damage(
            whole, parts_in_order(parts),
            [&](const damage& d, const std::string& damaged) -> std::string {
              const auto n = static_cast<std::int32_t>(d.at / static_cast<std::size_t>(room));
              if (d.kind == damage_kind::appended) return "";
              bytes->instead = &damaged;
              // The state before the damaged one must be unchanged.
              for (const std::int32_t i : {n - 1, n}) {
                if (i < 0) continue;
                const offload::hidden_state one{i / chunks, i % chunks};
                const std::int64_t begin = i * room;
                const bool hit = reaches(whole, damaged, begin,
                                         begin + (d.kind == damage_kind::cut ? room : state_bytes));
                const auto at = stream->acquire(one, state_bytes, false);
                refused += hit;
                std::string all(std::size_t{state_bytes}, '\0');
                if (at.ok()) {
                  dev.download(all.data(), at.value(), all.size());
                  stream->release(one, state_bytes, true);
                } else {
                  stream = made(); // the failed copy ended the stream
                  bytes->instead = &damaged;
                }
                if (auto wrong = verdict(at, hit, d); !wrong.empty()) return wrong;
                if (!hit && all != patterns[static_cast<std::size_t>(i)])
                  return "another state than was written";
              }
              return "";
            },
            sparse) == "");
  CHECK(refused > 30);
}
