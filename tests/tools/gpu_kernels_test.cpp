#include "tests/catch.hpp"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>
#include <vector>

#include <unistd.h>

#include "gpu/detail/linear_backend.hpp"
#include "gpu/detail/op_backends.hpp"
#include "gpu/rows/elementwise.hpp"
#include "tools/gpu-kernels/family.hpp"

// The harness checks kernels of a GPU. Here it checks the host's kernels, with and without faults.
using namespace twill;
using namespace twill::gpu_kernels;

namespace {

enum class flaw { none, value, unwritten, overrun, batch, luck, gated };
flaw planted = flaw::none;
int runs = 0;

float* at(const gpu::linear_args& args, std::int64_t row, std::int64_t output) {
  return args.out.as<float>() + row * args.out.row_stride + output;
}

/// The host's product, with the fault that `planted` names.
void spoilt(gpu::device& dev, const gpu::linear_args& args) {
  gpu::detail::host_linear.run(dev, args);
  const std::int64_t last_row = args.x.rows() - 1, last = args.out.shape[1] - 1;
  switch (planted) {
  case flaw::none:
  case flaw::gated:
    break;
  case flaw::value:
    *at(args, last_row, last) += 0.25F;
    break;
  case flaw::unwritten:
    std::memset(at(args, last_row, 0), 0xff, sizeof(float));
    break;
  case flaw::overrun:
    *at(args, last_row, last + 1) = 0;
    break;
  case flaw::batch: // depends on the number of rows, in the last bit of a float
    if (last_row < 3) *at(args, 0, last) = std::nextafter(*at(args, 0, last), 1e30F);
    break;
  case flaw::luck:
    if (++runs % 2 == 0)
      *at(args, last_row, last) = std::nextafter(*at(args, last_row, last), 1e30F);
    break;
  }
}

/// silu_mul() of the host's product, off by one bit if `planted` is flaw::gated.
bool spoilt_silu_mul(gpu::device& dev, const gpu::linear_args& args, gpu::tensor_ref out) {
  gpu::detail::host_linear.run(dev, args);
  gpu::silu_mul(dev, args.out, out);
  float& last = out.as<float>()[out.shape[1] - 1];
  if (planted == flaw::gated) last = std::nextafter(last, 1e30F);
  return true;
}

bool supports(const gpu::detail::packed_view& w, gpu::compute_type asked) {
  return w.kind == gpu::weight_kind::grouped_u4 && asked == gpu::compute_type::f32;
}

std::unique_ptr<gpu::device> open_spoilt(flaw with) {
  static const gpu::detail::linear_backend linear{supports, gpu::detail::host_linear.scratch_bytes,
                                                  spoilt, spoilt_silu_mul};
  static const gpu::detail::op_backends table = [] {
    gpu::detail::op_backends changed = gpu::detail::host_backends();
    std::get<const gpu::detail::linear_backend*>(changed.tables) = &linear;
    return changed;
  }();
  planted = with;
  runs = 0;
  return gpu::device::open({.kind = "host", .threads = 1, .ops = &table}).value();
}

/// A temporary file for the JSON lines of a run.
struct json_file {
  std::string path =
      std::filesystem::temp_directory_path() / ("gpu_kernels_test." + std::to_string(getpid()));
  ~json_file() { std::filesystem::remove(path); }
  std::string text() const {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

constexpr const char* one_shape = "linear grouped_u4 f32, 1152 -> 20, groups of 128, zeros, plain";

} // namespace

TEST_CASE("the harness finds the host's kernels right, at every shape") {
  const auto dev = open_spoilt(flaw::none);
  results out("");
  linear_family().check(*dev, {.only = "linear grouped_u4 f32"}, out);
  CHECK(out.wrong() == 0);
  // The factors count shapes, kinds of scales and offsets, and kinds of calls.
  CHECK(out.right() == (7 * 2 + 3 + 3) * 5);
}

TEST_CASE("the harness leaves out what a device has no kernel for") {
  const auto dev = open_spoilt(flaw::none);
  results out("");
  linear_family().check(*dev, {.only = "linear f16"}, out);
  CHECK(out.right() + out.wrong() == 0);
}

TEST_CASE("the harness names each fault of a kernel") {
  const auto [flaw, words] = GENERATE(table<::flaw, std::string>(
      {{flaw::value, "row 63, output 19 must be within"},
       {flaw::unwritten, "row 63, output 0 must be written"},
       {flaw::overrun, "row 63, output 20 lies outside and must not be written"},
       {flaw::batch, "row 0, output 19 must have the same bits among 1 and 64 rows"},
       {flaw::luck, "must have the same bits among"}}));
  const json_file json;
  const auto dev = open_spoilt(flaw);
  {
    results out(json.path);
    linear_family().check(*dev, {.only = one_shape}, out);
    CHECK(out.wrong() == 1);
    CHECK(out.right() == 0);
  }
  CAPTURE(json.text());
  CHECK(json.text().find(words) != std::string::npos);
}

TEST_CASE("the harness compares silu_mul inside a product with silu_mul of the product") {
  for (const flaw with : {flaw::none, flaw::gated}) {
    const json_file json;
    const auto dev = open_spoilt(with);
    {
      results out(json.path);
      linear_family().check(
          *dev, {.only = "grouped_u4 f32, 640 -> 128, groups of 32, zeros, gated", .small = true},
          out);
      CHECK(out.right() == (with == flaw::none ? 1 : 0));
      CHECK(out.wrong() == (with == flaw::none ? 0 : 1));
    }
    const bool named =
        json.text().find("row 0, output 63 of silu_mul must be") != std::string::npos;
    CHECK(named == (with == flaw::gated));
  }
}

TEST_CASE("the harness checks and times a layer's products") {
  const json_file json;
  const auto dev = gpu::device::open({.kind = "host", .threads = 1}).value();
  {
    results out(json.path);
    linear_family().check(*dev, {.only = "small-", .small = true}, out);
    CHECK(out.right() == 2 * 4); // 2 models with 4 products each
    CHECK(out.wrong() == 0);
    linear_family().measure(*dev, {.only = "linear grouped_u4 bf16, small-u4 ", .small = true},
                            out);
  }
  for (const char* shape : {"small-u4 qkv x 1", "small-u4 down x 1", "small-u4 layer x 1",
                            "small-u4 layer x 8", "small-u4 layer x 32"})
    CHECK(json.text().find("\"shape\":\"" + std::string(shape) + "\"") != std::string::npos);
}
