// A matrix whose 4-bit codes were widened to 8-bit codes gives products with the same bits as a
// matrix that has these 8-bit codes from the beginning.
#include "tests/catch.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "gpu/detail/linear_backend.hpp"
#include "gpu/detail/op_backends.hpp"
#include "gpu/host/isa.hpp"
#include "gpu/rows/embedding.hpp"
#include "tests/gpu/implementations.hpp"
#include "tests/gpu/linear/linear_fixture.hpp"
#include "tests/gpu/tested_device.hpp"

using namespace twill::gpu;
using namespace twill::gpu::test;

namespace {

/// One matrix twice: as 4-bit codes with factors and bases, and as the 8-bit codes they stand for.
struct widened {
  std::int64_t rows, cols;
  std::int32_t group, code_group;
  std::vector<std::uint8_t> codes, wide;     // (rows, cols)
  std::vector<float> scales, minus_middle;   // (rows, cols / group)
  std::vector<std::uint16_t> factors, bases; // (rows, cols / code_group)

  widened(std::int64_t n_rows, std::int64_t n_cols, std::int32_t columns, std::int32_t of_line,
          unsigned seed)
      : rows(n_rows), cols(n_cols), group(columns), code_group(of_line) {
    std::mt19937 random(seed);
    std::uniform_int_distribution<int> code(0, 15), end(0, 65535);
    std::uniform_real_distribution<float> scale(0.0001F, 0.001F);
    for (std::int64_t g = 0; g < rows * cols / group; ++g) {
      scales.push_back(scale(random));
      minus_middle.push_back(-128 * scales.back());
    }
    for (std::int64_t line = 0; line < rows * cols / code_group; ++line) {
      const int first = end(random), last = end(random); // rising or falling
      factors.push_back(static_cast<std::uint16_t>((last - first) / 15));
      bases.push_back(static_cast<std::uint16_t>(first));
      for (std::int32_t k = 0; k < code_group; ++k) {
        const int c = code(random);
        codes.push_back(static_cast<std::uint8_t>(c));
        wide.push_back(static_cast<std::uint8_t>((first + (last - first) / 15 * c) / 256));
      }
    }
  }
  weight_source source(weight_kind kind) const {
    const bool narrow = kind == weight_kind::grouped_u4_as_u8;
    weight_source s;
    s.kind = kind;
    s.rows = rows;
    s.cols = cols;
    s.group = group;
    s.code_group = narrow ? code_group : 0;
    s.grouped = [this, narrow](std::int64_t row, const grouped_row& out) {
      const std::int64_t groups = cols / group, lines = cols / code_group;
      std::copy_n((narrow ? codes : wide).data() + row * cols, cols, out.codes);
      std::copy_n(scales.data() + row * groups, groups, out.scales);
      std::copy_n(minus_middle.data() + row * groups, groups, out.offsets);
      if (!narrow) return;
      std::copy_n(factors.data() + row * lines, lines, out.factors);
      std::copy_n(bases.data() + row * lines, lines, out.bases);
    };
    return s;
  }
};

constexpr weight_kind narrow_kind = weight_kind::grouped_u4_as_u8;
constexpr weight_kind wide_kind = weight_kind::grouped_u8;

struct split {
  std::int64_t rows, cols;
  std::int32_t group, code_group;
};
constexpr split splits[] = {{16, 64, 64, 32},     {100, 192, 192, 96},  {33, 576, 192, 32},
                            {40, 1536, 256, 128}, {17, 1024, 512, 256}, {50, 2080, 160, 32}};

std::vector<std::unique_ptr<device>> devices() {
  std::vector<std::unique_ptr<device>> all;
  for (const std::string& isa : twill::test::tested_isas())
    all.push_back(twill::test::open_host(isa));
  for (const int implementation : twill::test::portable_implementations())
    all.push_back(twill::test::open_implementation(implementation));
  return all;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * 4) == 0;
}

} // namespace

TEST_CASE("codes that are widened give int8 products the bits of 8-bit codes") {
  for (const auto& dev : devices())
    for (const split& s : splits) {
      const widened w(s.rows, s.cols, s.group, s.code_group, 31);
      const auto narrow = pack(*dev, w.source(narrow_kind), "narrow").value();
      const auto wide = pack(*dev, w.source(wide_kind), "wide").value();
      if (s.code_group >= 96) CHECK(narrow.bytes() < 0.6 * static_cast<double>(wide.bytes()));
      for (const std::int64_t m : {1, 2, 7, 8, 9, 16, 17, 33, 65, 140, 520}) {
        INFO(dev->info().isa << " " << m << " x " << s.cols << " -> " << s.rows << ", " << s.group
                             << " / " << s.code_group);
        const auto x = spiky_floats(m * s.cols, 32);
        REQUIRE(same_bits(run_linear(*dev, narrow, x, m, compute_type::int8),
                          run_linear(*dev, wide, x, m, compute_type::int8)));
      }
    }
}

TEST_CASE("the kernel for any execution space widens codes too, in every compute type") {
  auto dev = twill::test::open_implementation(GENERATE(from_range(twill::test::implementations())));
  const widened w(35, 384, 128, 64, 33);
  const auto narrow = pack(*dev, w.source(narrow_kind), "narrow").value();
  const auto wide = pack(*dev, w.source(wide_kind), "wide").value();
  const auto x = spiky_floats(3 * 384, 34);
  const buffer from = to_device(*dev, x);
  const buffer to = dev->allocate(3 * 35 * 4, "out").value();
  for (const compute_type compute :
       {compute_type::f32, compute_type::bf16, compute_type::int8, compute_type::int8x2}) {
    CAPTURE(name_of(compute));
    const auto portable = [&](const packed_matrix& weights) {
      linear_args args;
      args.x = view_2d(from.data(), dtype::f32, 3, 384);
      args.out = view_2d(to.data(), dtype::f32, 3, 35);
      args.weights = &weights;
      args.compute = compute;
      dev->ops().portable->get<detail::linear_backend>().run(*dev, args);
      return to_host(*dev, to, 3 * 35);
    };
    const auto want = portable(wide);
    CHECK(same_bits(portable(narrow), want));
    // Only the portable kernel computes these types; int8 has a kernel of its own.
    if (compute != compute_type::int8)
      CHECK(same_bits(run_linear(*dev, narrow, x, 3, compute), want));
  }
}

TEST_CASE("a gate over widened codes, rows of them, and their image elsewhere are the same bits") {
  for (const auto& dev : devices()) {
    const widened w(64, 384, 192, 32, 35);
    const auto narrow = pack(*dev, w.source(narrow_kind), "narrow").value();
    const auto wide = pack(*dev, w.source(wide_kind), "wide").value();
    const auto moved = pack_on_host(*dev, w.source(narrow_kind), "moved").value();
    const auto layout = moved.layout();
    std::vector<float> image(static_cast<std::size_t>(layout.bytes(4)) / 4);
    moved.save_image(0, 4, image.data());
    const buffer device_image = to_device(*dev, image);
    packed_matrix placed = moved.like(64);
    placed.place(device_image.data());
    for (const std::int64_t m : {3, 20, 70}) {
      CAPTURE(dev->info().isa, m);
      const auto x = spiky_floats(m * 384, 36);
      const buffer from = to_device(*dev, x);
      const buffer room = dev->allocate(static_cast<std::size_t>(m) * 64 * 4, "room").value();
      const buffer to = dev->allocate(static_cast<std::size_t>(m) * 32 * 4, "out").value();
      const auto gated = [&](const packed_matrix& weights) {
        linear_args args;
        args.x = view_2d(from.data(), dtype::f32, m, 384);
        args.out = view_2d(room.data(), dtype::f32, m, 64);
        args.weights = &weights;
        args.compute = compute_type::int8;
        linear_silu_mul(*dev, args, view_2d(to.data(), dtype::f32, m, 32));
        return to_host(*dev, to, static_cast<std::size_t>(m) * 32);
      };
      const auto want = gated(wide);
      CHECK(same_bits(gated(narrow), want));
      CHECK(same_bits(gated(placed), want));
    }
    const buffer ids = to_device(*dev, std::vector<std::int32_t>{0, 63, 17, 5});
    const buffer out = dev->allocate(4 * 384 * 4, "out").value();
    const auto looked_up = [&](const packed_matrix& table) {
      embedding(*dev, table, static_cast<const std::int32_t*>(ids.data()),
                view_2d(out.data(), dtype::f32, 4, 384));
      return to_host(*dev, out, 4 * 384);
    };
    CHECK(same_bits(looked_up(narrow), looked_up(wide)));
  }
}

TEST_CASE("groups that cannot be widened are refused by name") {
  auto dev = twill::test::open_tested();
  const widened w(16, 192, 192, 96, 37);
  const auto refused = [&](std::int32_t group, std::int32_t code_group) {
    weight_source s = w.source(narrow_kind);
    s.group = group;
    s.code_group = code_group;
    const auto packed = pack(*dev, s, "w");
    REQUIRE_FALSE(packed.ok());
    return packed.detail();
  };
  CHECK(refused(32, 32) == "w: group of grouped_u4_as_u8 must be 64 to 512, got 32");
  CHECK(refused(192, 48) ==
        "w: code_group must be a multiple of 32 that divides group = 192, got 48");
  CHECK(refused(192, 0).find("got 0") != std::string::npos);
}
