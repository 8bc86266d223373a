// Packing, which brings weight matrices into the layout that the kernels read. Weight sources that
// fill whole row panels (16 rows) at once give the same bytes as sources that fill row by row, for
// a single matrix and for several that are packed as one; and values that are not finite are
// refused wherever they are.
#include "tests/catch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/gpu/linear/linear_fixture.hpp"
#include "tests/gpu/tested_device.hpp"

using namespace twill::gpu;
using namespace twill::gpu::test;

namespace {

constexpr weight_kind grouped_kinds[] = {weight_kind::grouped_u4, weight_kind::grouped_u8};
constexpr offsets forms[] = {offsets::stored_f16, offsets::stored_f32, offsets::factored,
                             offsets::zero_points};

/// The matrix as a source that fills the rows of some row panels at once.
weight_source in_panels(const matrix& w) {
  weight_source s = w.source();
  s.grouped_panels = [&w](const grouped_rows& out) {
    const std::int64_t groups = w.cols / w.group;
    std::copy_n(w.scales.data() + out.first_row * groups, out.n_rows * groups, out.scales);
    std::copy_n(w.group_offsets.data() + out.first_row * groups, out.n_rows * groups, out.offsets);
    if (out.words == nullptr) return;
    const std::int64_t bits = w.kind == weight_kind::grouped_u4 ? 4 : 8, per_word = 32 / bits;
    const std::int64_t row_words = w.cols / per_word;
    for (std::int64_t r = 0; r < out.n_rows; ++r)
      for (std::int64_t i = 0; i < row_words; ++i) {
        std::uint32_t word = 0;
        for (std::int64_t k = 0; k < per_word; ++k) {
          const std::int64_t at = (out.first_row + r) * w.cols + i * per_word + k;
          word |= std::uint32_t{w.codes[static_cast<std::size_t>(at)]} << (k * bits);
        }
        out.words[(r / 16 * row_words + i) * 16 + r % 16] = word;
      }
  };
  return s;
}

/// All bytes that packing makes.
std::vector<unsigned char> image_of(device& dev, const weight_source& source) {
  const packed_matrix w = pack_on_host(dev, source, "w").value();
  std::vector<unsigned char> image(static_cast<std::size_t>(w.layout().bytes(w.row_panels())));
  w.save_image(0, w.row_panels(), image.data());
  return image;
}

bool same_image(device& dev, const weight_source& a, const weight_source& b) {
  return image_of(dev, a) == image_of(dev, b);
}

/// Some matrices of one kind, stacked in sources that fill single rows or whole row panels.
struct pile {
  std::vector<matrix> parts;
  pile(weight_kind kind, offsets form, const std::vector<std::int64_t>& rows) {
    for (std::size_t i = 0; i < rows.size(); ++i)
      parts.push_back(random_matrix(kind, rows[i], 96, 32, form, 51 + static_cast<unsigned>(i)));
  }
  weight_source by_rows() const {
    std::vector<weight_source> sources;
    for (const matrix& w : parts)
      sources.push_back(w.source());
    return *stack_rows(sources);
  }
  weight_source by_panels() const {
    std::vector<weight_source> sources;
    for (const matrix& w : parts)
      sources.push_back(in_panels(w));
    return *stack_rows(sources);
  }
};

} // namespace

TEST_CASE("rows that a source fills at once are packed as they are one by one") {
  auto dev = twill::test::open_tested({.threads = 2});
  for (const weight_kind kind : grouped_kinds)
    for (const offsets form : forms)
      for (const std::int64_t rows : {1, 16, 40, 128, 300}) {
        CAPTURE(name_of(kind), static_cast<int>(form), rows);
        const matrix w = random_matrix(kind, rows, 96, 32, form, 50);
        CHECK(same_image(*dev, in_panels(w), w.source()));
        CHECK(packed_bytes(in_panels(w)) == packed_bytes(w.source()));
      }
}

TEST_CASE("stacked sources that fill rows at once are packed as stacked rows are") {
  auto dev = twill::test::open_tested({.threads = 2});
  // Runs of rows cross from part to part, lie within one and end within one.
  const std::vector<std::vector<std::int64_t>> piles = {
      {16, 16}, {48, 16, 160}, {144, 32, 16, 112}, {16, 400}};
  for (const weight_kind kind : grouped_kinds)
    for (const offsets form : forms)
      for (const auto& rows : piles) {
        CAPTURE(name_of(kind), static_cast<int>(form), rows);
        const pile p(kind, form, rows);
        const weight_source stacked = p.by_panels();
        CHECK(static_cast<bool>(stacked.grouped_panels));
        CHECK(same_image(*dev, stacked, p.by_rows()));
      }
}

TEST_CASE("a stack with a part that ends within a row panel is packed as its rows are") {
  auto dev = twill::test::open_tested({.threads = 2});
  for (const weight_kind kind : grouped_kinds)
    for (const auto& rows : std::vector<std::vector<std::int64_t>>{{20, 32}, {32, 20}}) {
      CAPTURE(name_of(kind), rows);
      const pile p(kind, offsets::stored_f16, rows);
      CHECK(same_image(*dev, p.by_panels(), p.by_rows()));
    }
}

TEST_CASE("the image of some row panels is a matrix of those rows, while it is placed") {
  auto dev = twill::test::open_tested({.threads = 2});
  const auto x = spiky_floats(3 * 96, 52);
  for (const weight_kind kind : {weight_kind::f32, weight_kind::grouped_u4}) {
    CAPTURE(name_of(kind));
    const matrix w = random_matrix(kind, 75, 96, 32, offsets::stored_f16, 53);
    const auto whole =
        run_linear(*dev, pack(*dev, w.source(), "w").value(), x, 3, compute_type::f32);
    const auto on_host = pack_on_host(*dev, w.source(), "w").value();
    CHECK_FALSE(on_host.readable());
    for (const std::int64_t first : {0, 1, 3})
      for (const std::int64_t rows : {16, 17, 27}) {
        CAPTURE(first, rows);
        packed_matrix some = on_host.like(rows);
        CHECK(some.rows() == rows);
        CHECK(some.row_panels() == (rows + 15) / 16);
        CHECK_FALSE(some.readable());
        std::vector<unsigned char> image(
            static_cast<std::size_t>(some.layout().bytes(some.row_panels())));
        on_host.save_image(first, some.row_panels(), image.data());
        const buffer on_device = to_device(*dev, image);
        some.place(on_device.data());
        REQUIRE(some.readable());
        const auto out = run_linear(*dev, some, x, 3, compute_type::f32);
        for (std::int64_t m = 0; m < 3; ++m)
          for (std::int64_t r = 0; r < rows; ++r)
            REQUIRE(out[static_cast<std::size_t>(m * rows + r)] ==
                    whole[static_cast<std::size_t>(m * 75 + 16 * first + r)]);
        some.place(nullptr);
        CHECK_FALSE(some.readable());
      }
  }
}

TEST_CASE("what packing takes is known where one part's offsets alone are unlike the others'") {
  auto dev = twill::test::open_tested({.threads = 2});
  for (const weight_kind kind : grouped_kinds)
    for (const std::size_t unlike : {0, 1, 2}) {
      CAPTURE(name_of(kind), unlike);
      pile p(kind, offsets::factored, {128, 128, 128});
      const std::int64_t like_all = packed_bytes(p.by_rows());
      p.parts[unlike] = random_matrix(kind, 128, 96, 32, offsets::stored_f32, 55);
      const std::int64_t taken = pack(*dev, p.by_rows(), "w").value().bytes();
      CHECK(taken > like_all);
      CHECK(packed_bytes(p.by_rows()) == taken);
      CHECK(packed_bytes(p.by_panels()) == taken);
    }
}

TEST_CASE("scales, offsets and values that are no numbers are refused wherever they lie") {
  auto dev = twill::test::open_tested({.threads = 2});
  const auto refused = [&](const weight_source& source) {
    const auto packed = pack(*dev, source, "blk.0.attn_q");
    if (packed.ok()) return false;
    CHECK(packed.code() == errc::bad_source);
    CHECK(packed.detail().find("blk.0.attn_q: every value must be finite") != std::string::npos);
    return true;
  };
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const std::int64_t row : {0, 15, 127, 128, 259}) {
    CAPTURE(row);
    for (const weight_kind kind : grouped_kinds)
      for (const bool scale : {true, false}) {
        matrix w = random_matrix(kind, 260, 96, 32, offsets::stored_f16, 61);
        const auto last_group = static_cast<std::size_t>(row * 3 + 2);
        (scale ? w.scales : w.group_offsets)[last_group] = scale ? NAN : infinity;
        CHECK(refused(w.source()));
        CHECK(refused(in_panels(w)));
      }
    for (const weight_kind kind : {weight_kind::f32, weight_kind::f16, weight_kind::bf16}) {
      CAPTURE(name_of(kind));
      matrix w = random_matrix(kind, 260, 33, 0, offsets::stored_f16, 62);
      CHECK_FALSE(refused(w.source()));
      const auto last_column = static_cast<std::size_t>(row * 33 + 32);
      if (kind == weight_kind::f32)
        w.values[last_column] = -infinity;
      else
        w.halves[last_column] = kind == weight_kind::f16 ? 0xfc00 : 0xff80;
      CHECK(refused(w.source()));
    }
  }
}

TEST_CASE("the largest values of each dense kind are packed") {
  auto dev = twill::test::open_tested({.threads = 2});
  for (const weight_kind kind : {weight_kind::f32, weight_kind::f16, weight_kind::bf16}) {
    CAPTURE(name_of(kind));
    matrix w = random_matrix(kind, 16, 8, 0, offsets::stored_f16, 63);
    if (kind == weight_kind::f32)
      w.values[5] = std::numeric_limits<float>::max();
    else
      w.halves[5] = kind == weight_kind::f16 ? 0x7bff : 0x7f7f;
    CHECK(pack(*dev, w.source(), "w").ok());
  }
}
