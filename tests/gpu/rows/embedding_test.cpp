#include "tests/catch.hpp"

#include "gpu/detail/half.hpp"
#include "gpu/rows/detail/column_item.hpp"
#include "gpu/rows/detail/embedding_kernel.hpp"
#include "gpu/rows/embedding.hpp"
#include "tests/gpu/implementations.hpp"
#include "tests/gpu/linear/linear_fixture.hpp"
#include "tests/gpu/sparse_memory.hpp"

using namespace twill::gpu;
using namespace twill::gpu::test;

TEST_CASE("an embedding gives the table's rows exactly, whatever its kind") {
  auto dev = twill::test::open_implementation(GENERATE(from_range(twill::test::implementations())));
  for (weight_kind kind : {weight_kind::f32, weight_kind::f16, weight_kind::bf16,
                           weight_kind::grouped_u4, weight_kind::grouped_u8})
    for (offsets form :
         {offsets::stored_f16, offsets::stored_f32, offsets::factored, offsets::zero_points}) {
      const matrix w = random_matrix(kind, 100, 96, 32, form, 1);
      auto table = pack(*dev, w.source(), "table").value();
      const std::vector<std::int32_t> ids{0, 99, 17, 16, 15, 17};
      const buffer on_device = to_device(*dev, ids);
      const buffer out = dev->allocate(6 * 100 * 4, "out").value();
      embedding(*dev, table, static_cast<const std::int32_t*>(on_device.data()),
                view_2d(out.data(), dtype::f32, 6, 96, 100));
      const auto actual = to_host(*dev, out, 600);
      for (std::size_t i = 0; i < ids.size(); ++i)
        for (std::size_t k = 0; k < 96; ++k) {
          const float want = w.values[static_cast<std::size_t>(ids[i]) * 96 + k];
          // An implementation may round scale * code before it adds the offset, or not. If the
          // scale has all 24 bits of an f32, the result may differ by half an ulp of the largest
          // scale * code, 2.55.
          if (form == offsets::stored_f32)
            REQUIRE(std::abs(actual[i * 100 + k] - want) <= 3e-7F);
          else
            REQUIRE(actual[i * 100 + k] == want);
        }
    }
}

TEST_CASE("an id outside the table gives zeros") {
  auto dev = twill::test::open_implementation(GENERATE(from_range(twill::test::implementations())));
  const matrix w = random_matrix(weight_kind::f32, 10, 8, 0, offsets::stored_f16, 2);
  auto table = pack(*dev, w.source(), "table").value();
  const buffer ids = to_device(*dev, std::vector<std::int32_t>{-1, 10});
  const buffer out = to_device(*dev, std::vector<float>(16, 1.0F));
  embedding(*dev, table, static_cast<const std::int32_t*>(ids.data()),
            view_2d(out.data(), dtype::f32, 2, 8));
  CHECK(to_host(*dev, out, 16) == std::vector<float>(16, 0.0F));
}

TEST_CASE("an embedding may be added to what is there") {
  auto dev = twill::test::open_implementation(GENERATE(from_range(twill::test::implementations())));
  for (weight_kind kind : {weight_kind::f32, weight_kind::f16, weight_kind::grouped_u4}) {
    const matrix w = random_matrix(kind, 20, 64, 32, offsets::stored_f16, 3);
    auto table = pack(*dev, w.source(), "positions").value();
    const std::vector<std::int32_t> ids{3, -1, 19};
    const buffer on_device = to_device(*dev, ids);
    const auto before = random_floats(3 * 70, 4);
    const buffer out = to_device(*dev, before);
    embedding(*dev, table, static_cast<const std::int32_t*>(on_device.data()),
              view_2d(out.data(), dtype::f32, 3, 64, 70), true);
    const auto actual = to_host(*dev, out, before.size());
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t k = 0; k < 70; ++k) {
        const bool added = ids[i] >= 0 && k < 64;
        const float row = added ? w.values[static_cast<std::size_t>(ids[i]) * 64 + k] : 0.0F;
        REQUIRE(actual[i * 70 + k] == Approx(before[i * 70 + k] + row).margin(1e-6));
      }
  }
}

TEST_CASE("tokens are taken from draws where a step says so") {
  auto dev = twill::test::open_implementation(GENERATE(from_range(twill::test::implementations())));
  const buffer ids = to_device(*dev, std::vector<std::int32_t>{5, 6, 7, 8});
  const buffer from = to_device(*dev, std::vector<std::int32_t>{-1, 2, 0, -1});
  const buffer drawn = to_device(*dev, std::vector<std::int32_t>{40, 41, 42});
  feed_tokens(*dev, static_cast<std::int32_t*>(ids.data()),
              static_cast<const std::int32_t*>(from.data()), 4,
              static_cast<const std::int32_t*>(drawn.data()));
  dev->fence();
  std::vector<std::int32_t> actual(4);
  dev->download(actual.data(), ids.data(), 16);
  CHECK(actual == std::vector<std::int32_t>{5, 42, 40, 8});
}

TEST_CASE("items beyond 2^31 and embedding tables beyond 2^31 elements are indexed in 64 bits") {
  constexpr std::int64_t vocab = 1 << 20, cols = 5120, gib = std::int64_t{1} << 30;
  const twill::test::sparse_memory table(vocab * cols * 2), out(8 * gib + (1 << 20));
  detail::packed_view w;
  w.kind = weight_kind::f16;
  w.rows = vocab;
  w.cols = w.padded_cols = cols;
  w.panels = vocab / detail::lanes;
  w.codes = table.as<unsigned char>();
  w.codes_stride = cols * detail::lanes * 2;
  constexpr std::int64_t id = vocab - 3, column = cols - 5;
  table.as<std::uint16_t>()[id / 16 * 16 * cols + column * 16 + id % 16] = detail::f32_to_f16(7);
  // The item of row r and that column, where r * cols exceeds 2^31 elements.
  constexpr std::int64_t r = (gib * 2 + 12345) / cols;
  static_assert(r * cols > (std::int64_t{1} << 31) - cols);
  const twill::test::sparse_memory ids((r + 2) * 4);
  ids.as<std::int32_t>()[r + 1] = static_cast<std::int32_t>(id);
  const detail::column_item<detail::embedding_span> item{
      {w, ids.as<std::int32_t>(), out.as<float>(), cols, false}, cols};
  item((r + 1) * cols + column);
  CHECK(out.as<float>()[(r + 1) * cols + column] == 7);
}
