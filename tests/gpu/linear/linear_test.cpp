#include "tests/catch.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "gpu/detail/linear_backend.hpp"
#include "gpu/detail/op_backends.hpp"
#include "gpu/host/isa.hpp"
#include "gpu/linear/host/kernels.hpp"
#include "gpu/rows/elementwise.hpp"
#include "tests/gpu/implementations.hpp"
#include "tests/gpu/linear/linear_fixture.hpp"
#include "tests/gpu/tested_device.hpp"

using namespace twill::gpu;
using namespace twill::gpu::test;

namespace {

using twill::test::open_host;
using twill::test::open_tested;
using twill::test::tested_isas;

constexpr weight_kind dense_kinds[] = {weight_kind::f32, weight_kind::f16, weight_kind::bf16};
constexpr weight_kind grouped_kinds[] = {weight_kind::grouped_u4, weight_kind::grouped_u8};
constexpr compute_type computes[] = {compute_type::f32, compute_type::f16, compute_type::bf16,
                                     compute_type::int8, compute_type::int8x2};

void check_close(const std::vector<float>& actual, const oracle& want, const std::string& name) {
  REQUIRE(actual.size() == want.value.size());
  std::size_t worst = 0;
  double excess = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double e = std::abs(actual[i] - want.value[i]) / want.bound[i];
    if (!(e <= excess)) {
      excess = e;
      worst = i;
      if (std::isnan(e)) break; // otherwise a later element would replace it
    }
  }
  if (!(excess <= 1)) {
    INFO(name << ": element " << worst << " is " << actual[worst] << ", exact " << want.value[worst]
              << " within " << want.bound[worst]);
    CHECK(excess <= 1);
  }
}

struct shape {
  std::int64_t m, n, k;
};
constexpr shape dense_shapes[] = {{1, 1, 1},     {2, 15, 7},   {3, 16, 8},     {5, 17, 33},
                                  {17, 100, 96}, {33, 40, 40}, {130, 33, 576}, {6, 70, 64}};
constexpr shape grouped_shapes[] = {{1, 1, 32},    {2, 15, 64},   {3, 16, 96},    {5, 17, 32},
                                    {17, 100, 96}, {33, 960, 64}, {130, 33, 576}, {6, 40, 1536}};

std::vector<std::unique_ptr<device>> devices() {
  std::vector<std::unique_ptr<device>> all;
  for (const std::string& isa : tested_isas())
    all.push_back(open_host(isa));
  for (const int implementation : twill::test::portable_implementations())
    all.push_back(twill::test::open_implementation(implementation));
  return all;
}

/// Whether the device's own implementation of linear() supports a compute type. The host's own
/// implementation has no f16; there the portable implementation computes it, which is slow and is
/// tested separately.
bool has_own(const device& dev, const packed_matrix& w, compute_type compute) {
  return dev.ops().get<detail::linear_backend>().supports(w.get().view, compute);
}

/// Checks every compute type on every device with both the host's and the portable implementation.
void check_matrix(const std::vector<std::unique_ptr<device>>& devices, const matrix& w,
                  std::int64_t m) {
  const bool grouped = w.kind >= weight_kind::grouped_u4;
  const auto x = grouped ? spiky_floats(m * w.cols, 5) : random_floats(m * w.cols, 5);
  std::vector<packed_matrix> packed; // one for each device, which cannot use another's memory
  for (const auto& dev : devices)
    packed.push_back(pack(*dev, w.source(), "w").value());
  for (compute_type compute : computes) {
    const oracle of_32 = exact(w, x, m, compute);
    for (std::size_t i = 0; i < devices.size(); ++i) {
      if (compute == compute_type::f16 && !has_own(*devices[i], packed[i], compute)) continue;
      const int8_rounding rounding = int8_rounding_of(*devices[i], packed[i]);
      const oracle want = rounding.always_residual ? exact(w, x, m, compute, rounding) : of_32;
      check_close(run_linear(*devices[i], packed[i], x, m, compute), want,
                  devices[i]->info().kind + " " + devices[i]->info().isa + " " + name_of(w.kind) +
                      " " + name_of(compute) + " group " + std::to_string(w.group) + " " +
                      std::to_string(m) + "x" + std::to_string(w.rows) + "x" +
                      std::to_string(w.cols));
    }
  }
}

} // namespace

TEST_CASE("dense linear layers agree with a naive product on every instruction set") {
  const auto all = devices();
  for (const shape& s : dense_shapes)
    for (weight_kind kind : dense_kinds)
      check_matrix(all, random_matrix(kind, s.n, s.k, 0, offsets::stored_f16, 1), s.m);
}

TEST_CASE("grouped linear layers agree with a naive product on every instruction set") {
  const auto all = devices();
  for (const shape& s : grouped_shapes)
    for (weight_kind kind : grouped_kinds)
      for (offsets form : {offsets::stored_f16, offsets::stored_f32, offsets::factored,
                           offsets::zero_points, offsets::zero_points_f32})
        check_matrix(all, random_matrix(kind, s.n, s.k, 32, form, 2), s.m);
}

TEST_CASE("int16 quant params agree with a naive product in every compute type") {
  const auto all = devices();
  for (const shape& s : grouped_shapes)
    for (offsets form : {offsets::stored_f16, offsets::stored_f32}) {
      matrix w = random_matrix(weight_kind::grouped_u4, s.n, s.k, 32, form, 2);
      for (std::size_t g = 0; g < w.scales.size(); g += 7) { // one row's groups are unlike
        w.scales[g] *= 20;
        w.group_offsets[g] *= -30;
      }
      check_matrix(all, with_int16_quant_params(std::move(w)), s.m);
    }
}

TEST_CASE(
    "int16 quant params give a row's bits alone and in any batch, at the largest magnitudes too") {
  for (const std::string& isa : tested_isas()) {
    auto one = open_host(isa, 1);
    auto two = open_host(isa, 2);
    matrix w = random_matrix(weight_kind::grouped_u4, 88, 1184, 32, offsets::stored_f16, 6);
    std::fill_n(w.codes.begin(), 16 * w.cols, std::uint8_t{0});
    std::fill_n(w.codes.begin() + 16 * w.cols, 16 * w.cols, std::uint8_t{15});
    w = with_int16_quant_params(std::move(w));
    const auto packed = pack(*one, w.source(), "w").value();
    auto x = spiky_floats(300 * w.cols, 7);
    std::fill_n(x.begin(), w.cols, 1.0F);
    std::fill_n(x.begin() + w.cols, w.cols, -1.0F);
    const auto rows = [&](std::int64_t first, std::int64_t end) {
      return std::vector<float>(x.begin() + first * w.cols, x.begin() + end * w.cols);
    };
    std::vector<float> alone;
    for (std::int64_t r = 0; r < 300; ++r) {
      const auto row = run_linear(*one, packed, rows(r, r + 1), 1, compute_type::int8);
      alone.insert(alone.end(), row.begin(), row.end());
    }
    for (std::int64_t m : {2, 7, 16, 17, 40, 65, 135, 300})
      for (device* dev : {one.get(), two.get()}) {
        const auto batch = run_linear(*dev, packed, rows(0, m), m, compute_type::int8);
        INFO(isa << " m " << m);
        REQUIRE(std::memcmp(batch.data(), alone.data(), batch.size() * 4) == 0);
      }
    check_close({alone.begin(), alone.begin() + 2 * w.rows},
                exact(w, rows(0, 2), 2, compute_type::int8), isa + ", all 1 and all -1");
  }
}

TEST_CASE("any group that is a multiple of 8 works") {
  constexpr struct {
    std::int64_t cols;
    std::int32_t group;
  } cases[] = {{8, 8},    {40, 8},  {40, 40},   {48, 24},  {64, 16},
               {240, 48}, {64, 64}, {256, 128}, {576, 576}};
  const auto all = devices();
  for (auto [cols, group] : cases)
    for (weight_kind kind : grouped_kinds)
      for (offsets form : {offsets::stored_f16, offsets::factored, offsets::zero_points})
        for (std::int64_t m : {1, 3, 20})
          check_matrix(all, random_matrix(kind, 35, cols, group, form, 3), m);
}

TEST_CASE("the largest codes and activations do not saturate") {
  for (const std::string& isa : tested_isas()) {
    auto dev = open_host(isa);
    for (weight_kind kind : grouped_kinds)
      for (float sign : {1.0F, -1.0F}) {
        matrix w = random_matrix(kind, 16, 64, 32, offsets::stored_f16, 4);
        const auto top = static_cast<std::uint8_t>(kind == weight_kind::grouped_u4 ? 15 : 255);
        std::fill(w.codes.begin(), w.codes.end(), top);
        std::fill(w.scales.begin(), w.scales.end(), 1.0F);
        std::fill(w.group_offsets.begin(), w.group_offsets.end(), 0.0F);
        auto packed = pack(*dev, w.source(), "w").value();
        for (compute_type compute : {compute_type::int8, compute_type::int8x2})
          for (std::int64_t m : {1, 20}) {
            const std::vector<float> x(static_cast<std::size_t>(m * 64), sign);
            for (float v : run_linear(*dev, packed, x, m, compute))
              CHECK(v == Approx(sign * 64.0F * top));
          }
      }
  }
}

TEST_CASE("a row's bits are the same alone, in any batch and on any number of threads") {
  for (const std::string& isa : tested_isas()) {
    auto one = open_host(isa, 1);
    auto two = open_host(isa, 2);
    auto three = open_host(isa, 3);
    for (weight_kind kind : {weight_kind::f32, weight_kind::f16, weight_kind::bf16,
                             weight_kind::grouped_u4, weight_kind::grouped_u8}) {
      const bool grouped = kind >= weight_kind::grouped_u4;
      const matrix w = random_matrix(kind, 100, 160, kind == weight_kind::grouped_u8 ? 16 : 32,
                                     grouped ? offsets::zero_points : offsets::stored_f16, 6);
      auto packed = pack(*one, w.source(), "w").value();
      const auto x = spiky_floats(70 * w.cols, 7);
      for (compute_type compute : computes) {
        if (!has_own(*one, packed, compute)) continue;
        std::vector<float> alone;
        for (std::int64_t r = 0; r < 70; ++r) {
          const auto row =
              run_linear(*one, packed, std::vector<float>(&x[r * w.cols], &x[r * w.cols] + w.cols),
                         1, compute);
          alone.insert(alone.end(), row.begin(), row.end());
        }
        for (std::int64_t m = 2; m <= 70; m = m < 34 ? m + 1 : m + 36)
          for (device* dev : {one.get(), two.get(), three.get()}) {
            const auto batch = run_linear(
                *dev, packed, std::vector<float>(x.begin(), x.begin() + m * w.cols), m, compute);
            INFO(isa << " " << name_of(kind) << " " << name_of(compute) << " m " << m);
            REQUIRE(std::memcmp(batch.data(), alone.data(), batch.size() * 4) == 0);
          }
      }
    }
  }
}

TEST_CASE("many rows of long columns give the bits of each row alone") {
  for (const std::string& isa : tested_isas()) {
    auto dev = open_host(isa, 2);
    for (weight_kind kind : grouped_kinds)
      for (std::int32_t group : {16, 32, 128})
        for (offsets form : {offsets::stored_f16, offsets::stored_f32, offsets::factored}) {
          const matrix w = random_matrix(kind, 40, group == 128 ? 1152 : 1184, group, form, 11);
          const auto packed = pack(*dev, w.source(), "w").value();
          const auto x = spiky_floats(520 * w.cols, 12);
          const auto rows = [&](std::int64_t first, std::int64_t end) {
            return std::vector<float>(x.begin() + first * w.cols, x.begin() + end * w.cols);
          };
          for (compute_type compute : {compute_type::int8, compute_type::int8x2})
            for (std::int64_t m :
                 {host::int8_gemv_rows(kind) + 1, std::int64_t{135}, std::int64_t{520}}) {
              const auto batch = run_linear(*dev, packed, rows(0, m), m, compute);
              for (std::int64_t r = 0; r < m; r += m < 64 ? 1 : m / 10) {
                INFO(isa << " " << name_of(kind) << " " << name_of(compute) << " group " << group
                         << " m " << m << " row " << r);
                const auto alone = run_linear(*dev, packed, rows(r, r + 1), 1, compute);
                REQUIRE(std::memcmp(&batch[r * w.rows], alone.data(), alone.size() * 4) == 0);
              }
            }
        }
  }
}

TEST_CASE("a residual from some row on leaves the rows before it without one") {
  for (const std::string& isa : tested_isas()) {
    auto dev = open_host(isa, 2);
    for (weight_kind kind : grouped_kinds)
      for (std::int32_t group : {16, 32, 128})
        for (std::int64_t from : {std::int64_t{16}, std::int64_t{48}, std::int64_t{70}}) {
          const matrix w = random_matrix(kind, 70, 640, group, offsets::stored_f16, 31);
          const auto packed = pack(*dev, w.source(), "w").value();
          const auto x = spiky_floats(135 * w.cols, 32);
          std::vector<float> alone;
          for (std::int64_t m : {std::int64_t{1}, std::int64_t{9}, std::int64_t{135}}) {
            INFO(isa << " " << name_of(kind) << " group " << group << " from " << from << " m "
                     << m);
            const std::vector<float> rows(x.begin(), x.begin() + m * w.cols);
            const auto mixed = run_linear(*dev, packed, rows, m, compute_type::int8x2, from);
            const auto both = run_linear(*dev, packed, rows, m, compute_type::int8x2);
            const auto one = exact(w, rows, m, compute_type::int8);
            if (m == 1) alone = mixed;
            REQUIRE(std::memcmp(mixed.data(), alone.data(), alone.size() * 4) == 0);
            bool differs = false;
            for (std::int64_t i = 0; i < m * w.rows; ++i) {
              const auto at = static_cast<std::size_t>(i);
              if (i % w.rows >= from / 16 * 16) {
                REQUIRE(mixed[at] == both[at]);
              } else {
                REQUIRE(std::abs(mixed[at] - one.value[at]) <= one.bound[at]);
                differs = differs || mixed[at] != both[at];
              }
            }
            REQUIRE(differs);
          }
        }
  }
}

TEST_CASE("linear_silu_mul gives the bits of its two ops") {
  for (const std::string& isa : tested_isas()) {
    auto dev = open_host(isa, 2);
    for (weight_kind kind : {weight_kind::f16, weight_kind::grouped_u4, weight_kind::grouped_u8})
      for (std::int64_t rows : {32, 70})
        for (std::int32_t group : {8, 32, 64}) {
          const bool grouped = kind >= weight_kind::grouped_u4;
          if (!grouped && group != 32) continue; // dense weights have none
          const matrix w = random_matrix(kind, rows, 640, grouped ? group : 0,
                                         grouped ? offsets::zero_points : offsets::stored_f16, 13);
          const auto packed = pack(*dev, w.source(), "w").value();
          for (compute_type compute : computes)
            for (std::int64_t m : {std::int64_t{16}, std::int64_t{21},
                                   host::int8_gemv_rows(kind) + 1, std::int64_t{135}}) {
              if (!has_own(*dev, packed, compute)) break;
              const auto x = spiky_floats(m * w.cols, 14);
              const buffer from = to_device(*dev, x);
              const buffer both = dev->allocate(std::size_t(m * rows) * 4, "both").value();
              const buffer apart = dev->allocate(std::size_t(m * rows) * 2, "apart").value();
              const buffer at_once = dev->allocate(std::size_t(m * rows) * 2, "out").value();
              linear_args args;
              args.x = view_2d(from.data(), dtype::f32, m, w.cols);
              args.out = view_2d(both.data(), dtype::f32, m, rows);
              args.weights = &packed;
              args.compute = compute;
              linear(*dev, args);
              silu_mul(*dev, args.out, view_2d(apart.data(), dtype::f32, m, rows / 2));
              linear_silu_mul(*dev, args, view_2d(at_once.data(), dtype::f32, m, rows / 2));
              INFO(isa << " " << name_of(kind) << " " << name_of(compute) << " rows " << rows
                       << " group " << group << " m " << m);
              const auto want = to_host(*dev, apart, m * rows / 2);
              const auto actual = to_host(*dev, at_once, m * rows / 2);
              REQUIRE(std::memcmp(actual.data(), want.data(), want.size() * 4) == 0);
            }
        }
  }
}

TEST_CASE("rows may be strided, biased and accumulated, and nothing else is written") {
  auto dev = open_tested();
  for (weight_kind kind : {weight_kind::f32, weight_kind::grouped_u4}) {
    const matrix w = random_matrix(kind, 37, 64, 32, offsets::stored_f16, 8);
    auto packed = pack(*dev, w.source(), "w").value();
    for (std::int64_t m : {1, 2, 9, 40})
      for (bool accumulate : {false, true}) {
        const auto x = spiky_floats(m * 64, 9);
        std::vector<float> wide(static_cast<std::size_t>(m * 80), 1e30F);
        for (std::int64_t r = 0; r < m; ++r)
          std::copy_n(&x[r * 64], 64, &wide[r * 80]);
        const buffer from = to_device(*dev, wide);
        const auto bias_values = random_floats(37, 10);
        const buffer bias = to_device(*dev, bias_values);
        const std::vector<float> before(static_cast<std::size_t>(m * 50), 3.0F);
        const buffer to = to_device(*dev, before);
        linear_args args;
        args.x = view_2d(from.data(), dtype::f32, m, 64, 80);
        args.out = view_2d(to.data(), dtype::f32, m, 37, 50);
        args.weights = &packed;
        args.bias = static_cast<const float*>(bias.data());
        args.accumulate = accumulate;
        linear(*dev, args);
        const auto out = to_host(*dev, to, before.size());
        const oracle want = exact(w, x, m, compute_type::f32);
        for (std::int64_t r = 0; r < m; ++r)
          for (std::int64_t n = 0; n < 50; ++n) {
            const double value =
                n < 37 ? want.value[r * 37 + n] + bias_values[n] + (accumulate ? 3 : 0) : 3;
            REQUIRE(std::abs(out[r * 50 + n] - value) < 1e-4);
          }
      }
  }
}

TEST_CASE("every backend's own table and its portable one agree with a naive product") {
  for (const int implementation : twill::test::implementations()) {
    auto dev = twill::test::open_implementation(implementation);
    const detail::linear_backend* const backends[] = {
        &dev->ops().get<detail::linear_backend>(),
        &dev->ops().portable->get<detail::linear_backend>()};
    for (weight_kind kind : {weight_kind::f32, weight_kind::f16, weight_kind::bf16,
                             weight_kind::grouped_u4, weight_kind::grouped_u8})
      for (compute_type compute : computes)
        for (offsets form_of_offsets :
             {offsets::stored_f32, offsets::factored, offsets::zero_points}) {
          const matrix w = random_matrix(kind, 35, 120, 40, form_of_offsets, 11);
          auto packed = pack(*dev, w.source(), "w").value();
          const auto x = spiky_floats(7 * w.cols, 12);
          const buffer from = to_device(*dev, x);
          const buffer to = dev->allocate(7 * 35 * 4, "out").value();
          linear_args args;
          args.x = view_2d(from.data(), dtype::f32, 7, w.cols);
          args.out = view_2d(to.data(), dtype::f32, 7, 35);
          args.weights = &packed;
          args.compute = compute;
          for (const detail::linear_backend* backend : backends) {
            if (!backend->supports(packed.get().view, compute)) continue;
            backend->run(*dev, args);
            check_close(to_host(*dev, to, 7 * 35),
                        exact(w, x, 7, compute, int8_rounding_of(*dev, packed)),
                        std::string(twill::test::name_of_implementation(implementation)) + " " +
                            name_of(kind) + " " + name_of(compute));
          }
        }
  }
}

TEST_CASE("f16 weights rounded to bf16 when packed give the bits of rounding at every use") {
  for (auto& dev : devices())
    for (const std::int64_t m : {1, 3, 7, 8, 9, 40}) {
      CAPTURE(dev->info().isa, m);
      const matrix w = random_matrix(weight_kind::f16, 53, 100, 0, offsets::stored_f16, 21);
      const auto x = random_floats(m * w.cols, 22);
      weight_source rounded = w.source();
      rounded.only_compute = compute_type::bf16;
      const auto packed = pack(*dev, rounded, "rounded").value();
      const auto as_stored = pack(*dev, w.source(), "w").value();
      CHECK(run_linear(*dev, packed, x, m, compute_type::bf16) ==
            run_linear(*dev, as_stored, x, m, compute_type::bf16));
    }
}

TEST_CASE("no rows is no work") {
  auto dev = open_tested();
  const matrix w = random_matrix(weight_kind::f32, 16, 16, 0, offsets::stored_f16, 13);
  auto packed = pack(*dev, w.source(), "w").value();
  CHECK(run_linear(*dev, packed, {}, 0, compute_type::f32).empty());
}

TEST_CASE("scales take the smallest form that is exact") {
  auto dev = open_tested();
  const auto bytes = [&](offsets form) {
    const matrix w = random_matrix(weight_kind::grouped_u4, 32, 64, 32, form, 14);
    return pack(*dev, w.source(), "w").value().bytes();
  };
  const std::int64_t codes = 32 * 64 / 2;
  CHECK(bytes(offsets::factored) == codes + 32 * 2 * 2);
  CHECK(bytes(offsets::stored_f16) == codes + 32 * 2 * 4);
  CHECK(bytes(offsets::zero_points) ==
        codes + 32 * 2 * 3 + 2 * 32); // blocks are padded to 64 bytes
  CHECK(bytes(offsets::zero_points_f32) == codes + 32 * 2 * 5 + 2 * 32);
  CHECK(bytes(offsets::stored_f32) == codes + 32 * 2 * 8);
  // Int16 quant params, where they apply: a row scale for each row, and four bytes for each group.
  for (offsets form : {offsets::stored_f16, offsets::stored_f32, offsets::factored}) {
    matrix w = random_matrix(weight_kind::grouped_u4, 32, 64, 32, form, 14);
    w.int16_quant_params = true;
    const bool apply = form != offsets::factored;
    CHECK(pack(*dev, w.source(), "w").value().bytes() ==
          (apply ? codes + 32 * 4 + 32 * 2 * 4 : bytes(form)));
    CHECK(packed_bytes(w.source()) == pack(*dev, w.source(), "w").value().bytes());
  }
}

TEST_CASE("one scale or offset that f16 cannot hold keeps all of a matrix in f32, and exact") {
  const auto all = devices();
  for (const bool scale : {true, false})
    for (const std::size_t row : {0, 16, 47}) {
      CAPTURE(scale, row);
      matrix w = random_matrix(weight_kind::grouped_u4, 48, 64, 32, offsets::stored_f16, 21);
      const std::size_t group = 2 * row + 1;
      (scale ? w.scales : w.group_offsets)[group] = scale ? 3.001F : 7.002F;
      for (std::size_t k = 32 * group; k < 32 * (group + 1); ++k)
        w.values[k] = w.scales[group] * static_cast<float>(w.codes[k]) + w.group_offsets[group];
      CHECK(pack(*all[0], w.source(), "w").value().bytes() == 48 * 64 / 2 + 48 * 2 * 8);
      check_matrix(all, w, 3);
    }
}

TEST_CASE("stacked sources are one matrix, unlike ones do not stack") {
  auto dev = open_tested();
  const matrix a = random_matrix(weight_kind::grouped_u4, 20, 64, 32, offsets::stored_f16, 15);
  const matrix b = random_matrix(weight_kind::grouped_u4, 13, 64, 32, offsets::stored_f16, 16);
  const matrix other = random_matrix(weight_kind::grouped_u8, 13, 64, 32, offsets::stored_f16, 17);
  CHECK(!stack_rows({a.source(), other.source()}));
  auto stacked = pack(*dev, *stack_rows({a.source(), b.source()}), "ab").value();
  CHECK(stacked.rows() == 33);
  const auto x = spiky_floats(64, 18);
  auto first = run_linear(*dev, pack(*dev, a.source(), "a").value(), x, 1, compute_type::f32);
  const auto second =
      run_linear(*dev, pack(*dev, b.source(), "b").value(), x, 1, compute_type::f32);
  first.insert(first.end(), second.begin(), second.end());
  CHECK(run_linear(*dev, stacked, x, 1, compute_type::f32) == first);
}

TEST_CASE("a source that contradicts itself is refused with the numbers") {
  auto dev = open_tested();
  matrix w = random_matrix(weight_kind::grouped_u4, 16, 96, 32, offsets::stored_f16, 19);
  const auto detail_of = [&](const weight_source& s) {
    auto r = pack(*dev, s, "blk.0.attn_q");
    REQUIRE(!r.ok());
    CHECK(r.code() == errc::bad_source);
    CHECK(r.detail().starts_with("blk.0.attn_q: "));
    return r.detail();
  };
  w.group = 36;
  CHECK(detail_of(w.source()).find("got 36") != std::string::npos);
  w.group = 64;
  CHECK(detail_of(w.source()).find("cols = 96, got 64") != std::string::npos);
  w.group = 0;
  detail_of(w.source());
  w.group = 32;
  w.rows = 0;
  detail_of(w.source());
}

TEST_CASE("packing past the budget is refused and leaves nothing behind") {
  auto dev = open_tested({.memory_bytes = 4096});
  const matrix w = random_matrix(weight_kind::f32, 64, 64, 0, offsets::stored_f16, 20);
  auto r = pack(*dev, w.source(), "head");
  REQUIRE(!r.ok());
  CHECK(r.code() == errc::out_of_memory);
  CHECK(dev->memory_used() == 0);
}
