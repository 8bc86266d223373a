#include "tests/catch.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>

#include "gpu/detail/linear_backend.hpp"
#include "gpu/detail/op_backends.hpp"
#include "tests/gpu/implementations.hpp"
#include "tests/gpu/linear/linear_fixture.hpp"
#include "tests/gpu/tested_device.hpp"

using namespace twill::gpu;
using namespace twill::gpu::test;

namespace {

using column_order = std::shared_ptr<const std::vector<std::int32_t>>;

column_order shuffled(std::int64_t cols, unsigned seed) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(cols));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  return std::make_shared<const std::vector<std::int32_t>>(std::move(order));
}

weight_source ordered(const matrix& w, const column_order& order) {
  weight_source s = w.source();
  s.column_order = order;
  return s;
}

/// Gathers the columns of x in the order of the weights' columns.
std::vector<float> gathered(const std::vector<float>& x, const std::vector<std::int32_t>& order) {
  std::vector<float> out;
  for (std::size_t at = 0; at < x.size(); at += order.size())
    for (const std::int32_t c : order)
      out.push_back(x[at + static_cast<std::size_t>(c)]);
  return out;
}

constexpr weight_kind kinds[] = {weight_kind::f32, weight_kind::f16, weight_kind::bf16,
                                 weight_kind::grouped_u4, weight_kind::grouped_u8};
constexpr compute_type computes[] = {compute_type::f32, compute_type::f16, compute_type::bf16,
                                     compute_type::int8, compute_type::int8x2};

} // namespace

TEST_CASE("a column order gives the bits of gathered activations, whatever the path") {
  for (const std::string& isa : twill::test::tested_isas())
    for (const std::int32_t threads : {1, 3}) {
      auto dev = twill::test::open_host(isa, threads);
      for (const weight_kind kind : kinds)
        for (const std::int64_t cols : {32, 160, 2080}) {
          const matrix w = random_matrix(kind, 50, cols, 32, offsets::stored_f16, 21);
          const auto order = shuffled(cols, 22);
          const auto straight = pack(*dev, w.source(), "w").value();
          const auto packed = pack(*dev, ordered(w, order), "w").value();
          for (const std::int64_t m : {1, 2, 5, 33}) {
            const auto x = spiky_floats(m * cols, 23);
            for (const compute_type compute : computes) {
              INFO(dev->info().isa << " " << name_of(kind) << " " << name_of(compute) << " m " << m
                                   << " cols " << cols);
              const auto actual = run_linear(*dev, packed, x, m, compute);
              const auto want = run_linear(*dev, straight, gathered(x, *order), m, compute);
              REQUIRE(std::memcmp(actual.data(), want.data(), want.size() * 4) == 0);
            }
          }
        }
    }
}

TEST_CASE("the kernel for any execution space honours a column order, over strided rows") {
  auto dev = twill::test::open_implementation(GENERATE(from_range(twill::test::implementations())));
  for (const weight_kind kind : kinds)
    for (const compute_type compute : computes) {
      const matrix w = random_matrix(kind, 35, 96, 32, offsets::stored_f16, 24);
      const auto order = shuffled(96, 25);
      const auto straight = pack(*dev, w.source(), "w").value();
      const auto packed = pack(*dev, ordered(w, order), "w").value();
      const auto wide = spiky_floats(3 * 100, 26);
      std::vector<float> x;
      for (int r = 0; r < 3; ++r)
        x.insert(x.end(), wide.begin() + r * 100, wide.begin() + r * 100 + 96);
      const auto run = [&](const packed_matrix& weights, const std::vector<float>& values,
                           std::int64_t stride) {
        const buffer from = to_device(*dev, values);
        const buffer to = dev->allocate(3 * 35 * 4, "out").value();
        linear_args args;
        args.x = view_2d(from.data(), dtype::f32, 3, 96, stride);
        args.out = view_2d(to.data(), dtype::f32, 3, 35);
        args.weights = &weights;
        args.compute = compute;
        dev->ops().portable->get<detail::linear_backend>().run(*dev, args);
        auto portable = to_host(*dev, to, 3 * 35);
        linear(*dev, args);
        const auto host = to_host(*dev, to, 3 * 35);
        portable.insert(portable.end(), host.begin(), host.end());
        return portable;
      };
      CHECK(run(packed, wide, 100) == run(straight, gathered(x, *order), 96));
    }
}

TEST_CASE("a row's bits are the same alone and in any batch in the kernel for any space") {
  for (const int implementation : twill::test::portable_implementations()) {
    auto dev = twill::test::open_implementation(implementation);
    for (const weight_kind kind : kinds)
      for (const compute_type compute : computes) {
        const matrix w = random_matrix(kind, 35, 160, 32, offsets::stored_f16, 34);
        const auto packed = pack(*dev, w.source(), "w").value();
        const auto x = spiky_floats(9 * w.cols, 35);
        const auto all = run_linear(*dev, packed, x, 9, compute);
        for (const std::int64_t m : {1, 3, 4, 6}) {
          const std::vector<float> first(x.begin(), x.begin() + m * w.cols);
          const auto some = run_linear(*dev, packed, first, m, compute);
          INFO(name_of(kind) << " " << name_of(compute) << " m " << m);
          REQUIRE(std::memcmp(some.data(), all.data(), some.size() * 4) == 0);
        }
      }
  }
}

TEST_CASE("only sources of equal column order stack") {
  auto dev = twill::test::open_tested();
  const matrix a = random_matrix(weight_kind::grouped_u4, 20, 64, 32, offsets::stored_f16, 27);
  const matrix b = random_matrix(weight_kind::grouped_u4, 13, 64, 32, offsets::stored_f16, 28);
  const auto order = shuffled(64, 29);
  CHECK(!stack_rows({ordered(a, order), b.source()}));
  CHECK(!stack_rows({a.source(), ordered(b, order)}));
  CHECK(!stack_rows({ordered(a, order), ordered(b, shuffled(64, 30))}));
  const auto stacked = stack_rows({ordered(a, order), ordered(b, shuffled(64, 29))});
  REQUIRE(stacked);
  const auto x = spiky_floats(64, 31);
  auto want = run_linear(*dev, pack(*dev, ordered(a, order), "a").value(), x, 1, compute_type::f32);
  const auto more =
      run_linear(*dev, pack(*dev, ordered(b, order), "b").value(), x, 1, compute_type::f32);
  want.insert(want.end(), more.begin(), more.end());
  CHECK(run_linear(*dev, pack(*dev, *stacked, "ab").value(), x, 1, compute_type::f32) == want);
}

TEST_CASE("a column order of the wrong length or range is refused with the numbers") {
  auto dev = twill::test::open_tested();
  const matrix w = random_matrix(weight_kind::grouped_u4, 16, 64, 32, offsets::stored_f16, 32);
  const auto detail_of = [&](std::vector<std::int32_t> order) {
    auto r = pack(*dev, ordered(w, std::make_shared<const std::vector<std::int32_t>>(order)), "q");
    REQUIRE(!r.ok());
    CHECK(r.code() == errc::bad_source);
    return r.detail();
  };
  std::vector<std::int32_t> order = *shuffled(64, 33);
  order[5] = 64;
  CHECK(detail_of(order).find("[0, 64), got 64") != std::string::npos);
  order[5] = -1;
  CHECK(detail_of(order).find("got -1") != std::string::npos);
  order.pop_back();
  CHECK(detail_of(order).find("cols = 64 entries, got 63") != std::string::npos);
}

TEST_CASE("what packing takes is known beforehand, whatever form scales and offsets have") {
  auto dev = twill::test::open_tested();
  for (const weight_kind kind : kinds)
    for (const offsets form : {offsets::stored_f16, offsets::stored_f32, offsets::factored,
                               offsets::zero_points, offsets::zero_points_f32})
      for (const bool in_order : {true, false}) {
        CAPTURE(name_of(kind), static_cast<int>(form), in_order);
        const matrix w = random_matrix(kind, 50, 160, 32, form, 41);
        const weight_source source = in_order ? w.source() : ordered(w, shuffled(160, 42));
        CHECK(pack(*dev, source, "w").value().bytes() == packed_bytes(source));
      }
  matrix refused = random_matrix(weight_kind::grouped_u4, 16, 96, 32, offsets::factored, 43);
  refused.group = 20;
  CHECK(packed_bytes(refused.source()) == 0);
}
