// What `twill doctor` reports about GPUs, over a table of machines and builds.
#include "tools/twill/nvidia_report.hpp"

#include <algorithm>

#include "tests/catch.hpp"

using namespace twill::tools;

namespace {

nvidia_driver machine(int cuda, int arch, const char* name) {
  nvidia_driver driver;
  driver.installed = true;
  driver.version = "580.65.06";
  driver.cuda = cuda;
  driver.gpus.push_back({name, arch, std::int64_t{80} << 30});
  return driver;
}

std::string text_of(const std::vector<std::pair<std::string, std::string>>& rows) {
  std::string text;
  for (const auto& [name, words] : rows)
    text += name + "|" + words + "\n";
  return text;
}

bool has_row(const std::vector<std::pair<std::string, std::string>>& rows, const char* name) {
  return std::ranges::any_of(rows, [&](const auto& row) { return row.first == name; });
}

} // namespace

TEST_CASE("machine code runs within a major version, and PTX on all later GPUs") {
  struct {
    const char* architectures;
    int arch;
    kernel_code code;
  } const cases[] = {
      {"", 80, kernel_code::none},
      {"80-real", 80, kernel_code::machine_code},
      {"80-real", 86, kernel_code::machine_code},
      {"86-real", 80, kernel_code::none},
      {"80-real", 90, kernel_code::none},
      {"80", 90, kernel_code::ptx},
      {"80", 75, kernel_code::none},
      {"90-virtual", 90, kernel_code::ptx},
      {"90-virtual", 120, kernel_code::ptx},
      {"90-virtual", 89, kernel_code::none},
      {"80-real,86-real,89-real,90", 89, kernel_code::machine_code},
      {"80-real,86-real,89-real,90", 120, kernel_code::ptx},
      {"80-real,86-real,89-real,90", 75, kernel_code::none},
      {"90-real", 120, kernel_code::none},
      {"90-real,80-real", 87, kernel_code::machine_code},
      {"80,90-real", 90, kernel_code::machine_code},
      {"90-virtual,90-real", 90, kernel_code::machine_code},
      {"80,90", 89, kernel_code::machine_code},
  };
  for (const auto& one : cases) {
    INFO(one.architectures << " on " << one.arch);
    CHECK(kernels_for(one.architectures, one.arch) == one.code);
  }
}

TEST_CASE("a machine without a driver is reported, and a build without CUDA") {
  const auto rows = gpu_rows({}, {});
  CHECK(text_of(rows) == "driver|none: there is no libcuda.so.1\n"
                         "this build|no CUDA: it computes on the processor alone\n");
  CHECK(has_row(gpu_rows({}, {"90-real", 13000}), "tried"));
}

TEST_CASE("a driver without a GPU gives its reason") {
  nvidia_driver driver;
  driver.installed = true;
  CHECK(gpu_rows(driver, {})[0].second == "installed, shows no GPU");
  driver.cuda = 12040;
  driver.version = "550.54.15";
  driver.fault = "no CUDA-capable device is detected";
  CHECK(gpu_rows(driver, {})[0].second ==
        "550.54.15, runs CUDA 12.4 and older, shows no GPU: no CUDA-capable device is detected");
}

TEST_CASE("each GPU is reported with its use") {
  struct {
    int driver, arch, cuda;
    const char *architectures, *use;
  } const cases[] = {
      {13000, 90, 0, "", "not used: `tools/build cuda` builds for it"},
      {13000, 90, 13000, "90-real", "usable: the kernels of this build are for it"},
      {12080, 90, 12080, "80", "usable: the kernels of this build are for it"},
      {13000, 90, 12080, "80", "usable: the kernels of this build are for it"},
      {12040, 90, 12080, "80",
       "not usable: the driver compiles this build's kernels for it, for which it must run CUDA "
       "12.8"},
      {12040, 120, 12080, "80-real,90",
       "not usable: the driver compiles this build's kernels for it, for which it must run CUDA "
       "12.8"},
      {12040, 86, 12080, "80", "usable: the kernels of this build are for it"},
      {12040, 90, 12080, "90-virtual,90-real", "usable: the kernels of this build are for it"},
      {12040, 90, 13000, "80", "not usable: this build needs a driver for CUDA 13.0"},
      {13000, 90, 12040, "90-real", "usable: the kernels of this build are for it"},
      {12040, 90, 12090, "90-real", "usable: the kernels of this build are for it"},
      {12040, 90, 13000, "90-real", "not usable: this build needs a driver for CUDA 13.0"},
      {13000, 80, 13000, "90-real",
       "not usable: `TWILL_CUDA_ARCH=80 tools/build cuda` builds kernels for it"},
      {13000, 75, 13000, "80-real", "not usable: twill needs compute capability 8.0 or later"},
      {13000, 75, 0, "", "not usable: twill needs compute capability 8.0 or later"},
  };
  for (const auto& one : cases) {
    INFO(one.arch << ", build " << one.architectures);
    const auto rows =
        gpu_rows(machine(one.driver, one.arch, "A card"), {one.architectures, one.cuda});
    REQUIRE(rows.size() == 5);
    CHECK(rows[1].first == "GPU 0");
    CHECK(rows[1].second.starts_with("A card, compute capability "));
    CHECK(rows[1].second.ends_with(", 80.0 GiB"));
    CHECK(rows[2].second == one.use);
    CHECK(rows[4].first == "tried");
  }
}

TEST_CASE("a build names the GPUs that its kernels are for") {
  const auto text = [](const char* architectures) {
    return gpu_rows({}, {architectures, 12080})[1].second;
  };
  CHECK(text("90-real") == "CUDA 12.8, kernels for compute capability 9.0");
  CHECK(text("80-real,86-real,89-real,90") ==
        "CUDA 12.8, kernels for compute capability 8.0, 8.6, 8.9, 9.0 and later");
}
