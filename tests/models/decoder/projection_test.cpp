// A projection (a linear layer) stacks several matrices, each described by a matrix_role. The
// matrices are packed together or separately, depending on their kinds. Whatever the kinds, each
// output equals that of a naive product.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu/linear/linear.hpp"
#include "models/checkpoint/half.hpp"
#include "models/decoder/projection.hpp"
#include "tests/catch.hpp"
#include "tests/gpu/tested_device.hpp"
#include "tests/support/operations.hpp"

using namespace twill::models;
using namespace twill::test;
namespace gpu = twill::gpu;

namespace {

constexpr std::int32_t group = 32;

/// One matrix: its codes, and the values that they stand for.
struct made_matrix {
  gpu::weight_kind kind = gpu::weight_kind::f32;
  std::int64_t rows = 0, cols = 0;
  std::vector<float> f32;             // (rows, cols) dense
  std::vector<std::uint16_t> halves;  // (rows, cols) dense, of 16 bits
  std::vector<std::uint8_t> codes;    // (rows, cols) grouped
  std::vector<float> scales, offsets; // (rows, cols / group)
  std::vector<float> bias;            // (rows), or empty
  std::vector<double> values;         // (rows, cols)

  made_matrix(gpu::weight_kind k, std::int64_t r, std::int64_t c, std::mt19937& random)
      : kind(k), rows(r), cols(c) {
    std::normal_distribution<float> normal(0, 0.1F);
    for (std::int64_t i = 0; i < rows * cols; ++i)
      add_value(i, normal(random), random);
  }

  gpu::weight_source source() const {
    gpu::weight_source s;
    s.kind = kind;
    s.rows = rows;
    s.cols = cols;
    if (kind == gpu::weight_kind::f32)
      s.dense_row = [this](std::int64_t r) -> const void* { return f32.data() + r * cols; };
    else if (!gpu::is_grouped(kind))
      s.dense_row = [this](std::int64_t r) -> const void* { return halves.data() + r * cols; };
    else
      s.grouped = [this](std::int64_t r, const gpu::grouped_row& out) {
        std::copy_n(codes.begin() + r * cols, cols, out.codes);
        std::copy_n(scales.begin() + r * (cols / group), cols / group, out.scales);
        std::copy_n(offsets.begin() + r * (cols / group), cols / group, out.offsets);
      };
    s.group = gpu::is_grouped(kind) ? group : 0;
    return s;
  }

private:
  void add_value(std::int64_t i, float value, std::mt19937& random) {
    switch (kind) {
    case gpu::weight_kind::f32:
      f32.push_back(value);
      values.push_back(value);
      return;
    case gpu::weight_kind::bf16:
      halves.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16));
      values.push_back(widen_bf16(halves.back()));
      return;
    default:
      break;
    }
    if (i % group == 0) {
      scales.push_back(0.01F + 0.001F * static_cast<float>(random() % 8));
      offsets.push_back(-scales.back() * static_cast<float>(random() % 15));
    }
    codes.push_back(
        static_cast<std::uint8_t>(random() % (kind == gpu::weight_kind::grouped_u4 ? 16 : 256)));
    values.push_back(double{scales.back()} * codes.back() + offsets.back());
  }
};

/// A checkpoint of such matrices, each with its bias if it has one.
class made_checkpoint final : public checkpoint {
public:
  void add(const std::string& name, std::unique_ptr<made_matrix> m) {
    infos_[name] = {name, {m->rows, m->cols}, "made", 0};
    if (!m->bias.empty()) infos_[bias_of(name)] = {bias_of(name), {m->rows}, "F32", 0};
    matrices_[name] = std::move(m);
  }
  std::vector<tensor_info> tensors() const override {
    std::vector<tensor_info> all;
    for (const auto& [name, info] : infos_)
      all.push_back(info);
    return all;
  }
  const tensor_info* find(std::string_view name) const override {
    const auto at = infos_.find(std::string(name));
    return at == infos_.end() ? nullptr : &at->second;
  }
  result<gpu::weight_source> matrix(std::string_view name) const override {
    return matrices_.at(std::string(name))->source();
  }
  result<std::vector<float>> vector(std::string_view name) const override {
    for (const auto& [matrix, m] : matrices_)
      if (bias_of(matrix) == name) return m->bias;
    return twill::failure{errc::missing_tensor, std::string(name)};
  }

private:
  std::map<std::string, tensor_info> infos_;
  std::map<std::string, std::unique_ptr<made_matrix>> matrices_;
};

/// A projection: its weights, its input and the compute type.
struct projection_case {
  gpu::compute_type compute = gpu::compute_type::f32;
  std::int64_t cols = 64, n = 3, residual_from = 0;
  std::shared_ptr<made_checkpoint> weights = std::make_shared<made_checkpoint>();
  std::vector<matrix_role> roles;
  std::vector<const made_matrix*> matrices;
  std::vector<float> x; // (n, cols)

  std::int64_t rows() const {
    std::int64_t sum = 0;
    for (const auto& role : roles)
      sum += role.rows;
    return sum;
  }
};

/// Each operation gives one role; the first one also gives the sizes and the input.
std::unique_ptr<projection_case> case_of(const operations& sequence) {
  using kind = gpu::weight_kind;
  auto made = std::make_unique<projection_case>();
  const operation first = sequence.front();
  made->compute = std::array{gpu::compute_type::int8x2, gpu::compute_type::f32,
                             gpu::compute_type::int8, gpu::compute_type::bf16}[first.kind / 5 % 4];
  made->cols = group * static_cast<std::int64_t>(1 + first.a % 5);
  made->n = 1 + first.b % 7;
  std::mt19937 random(first.c);
  for (std::size_t i = 0; i < std::min<std::size_t>(sequence.size(), 4); ++i) {
    const operation& o = sequence[i];
    const kind which = std::array{kind::grouped_u4, kind::grouped_u8, kind::f32, kind::bf16,
                                  kind::grouped_u4}[o.kind % 5];
    const std::int64_t rows = 16 * static_cast<std::int64_t>(1 + o.a / 5 % 4);
    auto m = std::make_unique<made_matrix>(which, rows, made->cols, random);
    matrix_role role{"m" + std::to_string(i), rows, made->cols,
                     std::array{bias_rule::none, bias_rule::if_present, bias_rule::if_present,
                                bias_rule::required}[o.b / 7 % 4]};
    if (role.bias == bias_rule::required || (role.bias != bias_rule::none && o.b / 28 % 2 == 1) ||
        (role.bias == bias_rule::none && o.b / 28 % 4 == 3)) // a bias that has to be ignored
      for (std::int64_t r = 0; r < rows; ++r)
        m->bias.push_back(1 + static_cast<float>(random() % 64) / 8);
    made->roles.push_back(role);
    made->matrices.push_back(m.get());
    made->weights->add(role.name, std::move(m));
  }
  made->residual_from = 16 * (first.b / 112 % (made->rows() / 16 + 1));
  // One value in each 32 columns dominates the others, as in the inputs that need the residual.
  std::normal_distribution<float> normal(0, 1);
  for (std::int64_t i = 0; i < made->n * made->cols; ++i)
    made->x.push_back(i % 32 == 7 ? 60 + static_cast<float>(random() % 100) : normal(random));
  return made;
}

/// The product in double and, for each output, the quantities with which its error grows.
struct naive_product {
  std::vector<double> out;     // (n, rows)
  std::vector<double> size;    // (n, rows) the sum of magnitudes
  std::vector<double> in_int8; // (n, rows) the largest error from rounding activations to 8 bits

  explicit naive_product(const projection_case& c) {
    for (std::int64_t t = 0; t < c.n; ++t)
      for (std::size_t i = 0; i < c.roles.size(); ++i) {
        const made_matrix& m = *c.matrices[i];
        for (std::int64_t r = 0; r < m.rows; ++r) {
          const bool biased = c.roles[i].bias != bias_rule::none && !m.bias.empty();
          double sum = biased ? m.bias[static_cast<std::size_t>(r)] : 0, magnitudes = 1e-6,
                 lost = 0;
          for (std::int64_t k = 0; k < m.cols; ++k) {
            const double product = m.values[static_cast<std::size_t>(r * m.cols + k)] *
                                   double{c.x[static_cast<std::size_t>(t * m.cols + k)]};
            sum += product;
            magnitudes += std::abs(product);
            lost += std::abs(m.values[static_cast<std::size_t>(r * m.cols + k)]) *
                    largest(c, t, k / group) / 127 / 2;
          }
          out.push_back(sum);
          size.push_back(magnitudes);
          in_int8.push_back(lost);
        }
      }
  }

private:
  /// The largest magnitude of a group of activations, which are rounded together.
  static double largest(const projection_case& c, std::int64_t t, std::int64_t of) {
    double most = 0;
    for (std::int64_t k = of * group; k < (of + 1) * group; ++k)
      most = std::max(most, std::abs(double{c.x[static_cast<std::size_t>(t * c.cols + k)]}));
    return most;
  }
};

gpu::device& device() {
  static const auto dev = open_tested();
  return *dev;
}

/// Memory on the device that holds the given values.
class on_device {
public:
  explicit on_device(const std::vector<float>& values)
      : size_(values.size()), memory_(device().allocate(size_ * sizeof(float), "test").value()) {
    device().upload(memory_.data(), values.data(), size_ * sizeof(float));
  }
  gpu::tensor_ref as(std::int64_t rows, std::int64_t cols) const {
    return gpu::view_2d(memory_.data(), gpu::dtype::f32, rows, cols);
  }
  std::vector<float> get() const {
    std::vector<float> values(size_);
    device().fence();
    device().download(values.data(), memory_.data(), size_ * sizeof(float));
    return values;
  }

private:
  std::size_t size_;
  gpu::buffer memory_;
};

projection loaded(const projection_case& c, gpu::compute_type compute) {
  auto p =
      projection::load(device(), *c.weights, c.roles, compute, packing::on_device, c.residual_from);
  demand(p.ok(), p.ok() ? "" : p.detail());
  return std::move(p).value();
}

std::vector<float> applied(const projection_case& c, gpu::compute_type compute, float before,
                           bool accumulate) {
  const projection p = loaded(c, compute);
  const on_device x(c.x);
  const on_device out(std::vector<float>(static_cast<std::size_t>(c.n * c.rows()), before));
  p.apply(device(), x.as(c.n, c.cols), out.as(c.n, c.rows()), accumulate);
  return out.get();
}

/// How far an output may be from the naive one.
double most_error(const projection_case& c, const naive_product& naive, std::size_t at,
                  std::size_t role, std::int64_t column) {
  const bool grouped = gpu::is_grouped(c.matrices[role]->kind);
  const double size = naive.size[at] + std::abs(naive.out[at]);
  if (c.compute == gpu::compute_type::bf16) return 1e-2 * size;
  if (c.compute == gpu::compute_type::f32 || !grouped) return 2e-6 * size;
  const bool finer = c.compute == gpu::compute_type::int8x2 && column >= c.residual_from;
  return 2e-3 * size / (finer ? 10 : 1) + naive.in_int8[at] / (finer ? 64 : 1);
}

void check_apply(const projection_case& c) {
  const naive_product naive(c);
  const bool accumulate = c.n % 2 == 0;
  constexpr float before = 3.5F;
  const auto got = applied(c, c.compute, before, accumulate);
  for (std::int64_t t = 0; t < c.n; ++t) {
    std::int64_t column = 0;
    for (std::size_t i = 0; i < c.roles.size(); ++i)
      for (std::int64_t r = 0; r < c.roles[i].rows; ++r, ++column) {
        const auto at = static_cast<std::size_t>(t * c.rows() + column);
        const double wanted = naive.out[at] + (accumulate ? double{before} : 0.0);
        const double limit = most_error(c, naive, at, i, column) + (accumulate ? 1e-6 : 0);
        demand(std::abs(got[at] - wanted) <= limit,
               "output " + std::to_string(column) + " of row " + std::to_string(t) + " is " +
                   std::to_string(got[at]) + ", expected " + std::to_string(wanted) + " within " +
                   std::to_string(limit));
      }
  }
  if (c.compute != gpu::compute_type::int8x2 || !device().memory_is_host()) return;
  // Each output has the bits of a projection with the residual in all outputs, or in none.
  projection_case all = c, none = c;
  all.residual_from = 0;
  none.residual_from = c.rows();
  const auto with = applied(all, c.compute, before, accumulate);
  const auto without = applied(none, c.compute, before, accumulate);
  for (std::size_t at = 0; at < got.size(); ++at) {
    const std::int64_t column = static_cast<std::int64_t>(at) % c.rows();
    demand(got[at] == (column < c.residual_from ? without : with)[at],
           "output " + std::to_string(column) + " has a residual, or lacks one");
  }
}

/// Checks silu(gate) * up, where gate is the first half of the outputs.
void check_gated(const projection_case& c) {
  const std::int64_t half = c.rows() / 2;
  const bool whole =
      c.roles.size() == 1 || (c.roles.size() == 2 && c.roles[0].rows == c.roles[1].rows);
  if (!whole) return;
  const auto both = applied(c, c.compute, 0, false);
  const projection p = loaded(c, c.compute);
  const on_device x(c.x);
  const on_device room(std::vector<float>(static_cast<std::size_t>(c.n * c.rows())));
  const on_device out(std::vector<float>(static_cast<std::size_t>(c.n * half)));
  p.apply_gated(device(), x.as(c.n, c.cols), room.as(c.n, c.rows()), out.as(c.n, half), nullptr);
  const auto got = out.get();
  for (std::int64_t t = 0; t < c.n; ++t)
    for (std::int64_t i = 0; i < half; ++i) {
      const double gate = both[static_cast<std::size_t>(t * c.rows() + i)];
      const double up = both[static_cast<std::size_t>(t * c.rows() + half + i)];
      const double wanted = gate / (1 + std::exp(-gate)) * up;
      demand(std::abs(got[static_cast<std::size_t>(t * half + i)] - wanted) <=
                 1e-4 * (std::abs(wanted) + 1e-3),
             "gated output " + std::to_string(i) + " of row " + std::to_string(t));
    }
}

} // namespace

TEST_CASE("a projection of any kinds of matrices is their naive product") {
  CHECK(first_failure({400, 20'000, 5}, [](const operations& sequence) {
          if (sequence.empty()) return;
          const auto c = case_of(sequence);
          check_apply(*c);
          check_gated(*c);
        }) == "");
}
