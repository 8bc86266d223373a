// Defines the functions of CUDA's driver that Kokkos calls. Each looks up the real function in the
// driver's library when it is called. A program linked to that library would not start on a machine
// without a driver; this program starts there and computes on the host.
#include <dlfcn.h>

namespace {

constexpr int no_driver = 3; // CUDA_ERROR_NOT_INITIALIZED

template <class... Args>
int call_driver(const char* name, Args... args) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  void* const found = library == nullptr ? nullptr : dlsym(library, name);
  return found == nullptr ? no_driver : reinterpret_cast<int (*)(Args...)>(found)(args...);
}

} // namespace

extern "C" {

int cuStreamGetCtx(void* stream, void** context) {
  return call_driver("cuStreamGetCtx", stream, context);
}
int cuCtxPushCurrent_v2(void* context) {
  return call_driver("cuCtxPushCurrent_v2", context);
}
int cuCtxGetDevice(int* device) {
  return call_driver("cuCtxGetDevice", device);
}
}
