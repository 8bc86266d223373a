#include "tools/twill/nvidia_driver.hpp"

#include <dlfcn.h>

#include <cstddef>
#include <fstream>

namespace twill::tools {

namespace {

// A status code of CUDA's driver API; its numbers never change.
constexpr int success = 0;
constexpr int capability_major = 75, capability_minor = 76;

/// Returns a function of the driver library, or null when the library has none of that name.
template <class F>
F* function(void* library, const char* name) {
  return reinterpret_cast<F*>(dlsym(library, name));
}

std::string words_of(void* library, int error) {
  const char* words = nullptr;
  const auto text = function<int(int, const char**)>(library, "cuGetErrorString");
  if (text != nullptr && text(error, &words) == success && words != nullptr) return words;
  return "error " + std::to_string(error);
}

/// The version of the driver's kernel module.
std::string module_version() {
  std::string version;
  std::ifstream("/sys/module/nvidia/version") >> version;
  return version;
}

nvidia_gpu ask_gpu(void* library, int id) {
  nvidia_gpu gpu;
  int device = 0, major = 0, minor = 0;
  char name[256] = {};
  std::size_t bytes = 0;
  const auto get = function<int(int*, int)>(library, "cuDeviceGet");
  if (get == nullptr || get(&device, id) != success) return gpu;
  if (const auto f = function<int(char*, int, int)>(library, "cuDeviceGetName"))
    if (f(name, sizeof name - 1, device) == success) gpu.name = name;
  if (const auto f = function<int(std::size_t*, int)>(library, "cuDeviceTotalMem_v2"))
    if (f(&bytes, device) == success) gpu.memory_bytes = static_cast<std::int64_t>(bytes);
  if (const auto f = function<int(int*, int, int)>(library, "cuDeviceGetAttribute"))
    if (f(&major, capability_major, device) == success &&
        f(&minor, capability_minor, device) == success)
      gpu.arch = 10 * major + minor;
  return gpu;
}

} // namespace

nvidia_driver ask_nvidia_driver() {
  nvidia_driver driver;
  // never closed, because CUDA may use it too
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return driver;
  driver.installed = true;
  driver.version = module_version();
  if (const auto version = function<int(int*)>(library, "cuDriverGetVersion"))
    version(&driver.cuda);
  const auto init = function<int(unsigned)>(library, "cuInit");
  const auto count = function<int(int*)>(library, "cuDeviceGetCount");
  int gpus = 0;
  int failed = init == nullptr || count == nullptr ? -1 : init(0);
  if (failed == success) failed = count(&gpus);
  if (failed != success) {
    driver.fault = words_of(library, failed);
    return driver;
  }
  for (int id = 0; id < gpus; ++id)
    driver.gpus.push_back(ask_gpu(library, id));
  return driver;
}

} // namespace twill::tools
