// gpu-kernels: checks and times CUDA's own kernels, without Kokkos and the rest of twill.
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>

#include "config/base/standard_streams.hpp"
#include "gpu/device.hpp"
#include "gpu/peak_rates.hpp"
#include "tools/gpu-kernels/family.hpp"
#include "tools/twill-bench/kernels/device_memory.hpp"

namespace twill::gpu_kernels {
namespace {

constexpr const char* usage =
    "Checks and times CUDA's own kernels on this machine's GPU.\n"
    "Usage: gpu-kernels [--json FILE] [--only TEXT] [--check-only] [--no-graphs] [--small]\n"
    "  --json FILE   write what was found as lines of JSON\n"
    "  --only TEXT   only kernels and shapes whose \"kernel, shape\" has this text\n"
    "  --check-only  time nothing\n"
    "  --no-graphs   time launches without capturing them\n"
    "  --small       toy shapes in place of the seed models'\n";

const family families[] = {linear_family()};

struct arguments {
  options chosen;
  std::string json_path;
  bool check_only = false;
};

/// Throws std::invalid_argument.
arguments parsed(int argc, char** argv) {
  arguments given;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const auto text = [&]() -> std::string {
      if (i + 1 == argc) throw std::invalid_argument(flag + " needs a value");
      return argv[++i];
    };
    if (flag == "--json")
      given.json_path = text();
    else if (flag == "--only")
      given.chosen.only = text();
    else if (flag == "--check-only")
      given.check_only = true;
    else if (flag == "--no-graphs")
      given.chosen.graphs = false;
    else if (flag == "--small")
      given.chosen.small = true;
    else
      throw std::invalid_argument("there is no argument " + flag);
  }
  return given;
}

int run(const arguments& given) {
  const auto dev = bench::value_of(gpu::device::open({.kind = "cuda"}));
  results out(given.json_path);
  {
    const auto probe = bench::value_of(gpu::memory_probe::make(*dev));
    out.device(dev->info(), probe.read_bytes_per_s(), probe.copy_bytes_per_s());
  }
  for (const family& one : families) {
    const int before = out.right() + out.wrong();
    one.check(*dev, given.chosen, out);
    if (out.right() + out.wrong() == before && given.chosen.only.empty())
      throw std::runtime_error(std::string("the family ") + one.name + " has checked nothing");
  }
  if (!given.check_only)
    for (const family& one : families)
      one.measure(*dev, given.chosen, out);
  out.finish();
  return out.wrong() > 0 || out.right() == 0 ? 1 : 0;
}

} // namespace
} // namespace twill::gpu_kernels

int main(int argc, char** argv) {
  twill::open_missing_standard_streams();
  using namespace twill::gpu_kernels;
  if (argc == 2 && std::strcmp(argv[1], "--help") == 0) {
    std::fputs(usage, stdout);
    return 0;
  }
  try {
    return run(parsed(argc, argv));
  } catch (const std::invalid_argument& e) {
    std::fprintf(stderr, "gpu-kernels: %s\n%s", e.what(), usage);
    return 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "gpu-kernels: %s\n", e.what());
    return 1;
  }
}
