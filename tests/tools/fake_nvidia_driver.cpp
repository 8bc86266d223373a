// A fake of the functions of NVIDIA's driver that `twill doctor` calls, for a machine with an A100
// and a T4. cuInit returns the number in the environment variable FAKE_CUDA_INIT.
#include <cstddef>
#include <cstdio>
#include <cstdlib>

extern "C" {

int cuInit(unsigned) {
  const char* const status = std::getenv("FAKE_CUDA_INIT");
  return status == nullptr ? 0 : std::atoi(status);
}
int cuDriverGetVersion(int* version) {
  *version = 12040;
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = 2;
  return 0;
}
int cuDeviceGet(int* device, int id) {
  *device = id;
  return 0;
}
int cuDeviceGetName(char* name, int bytes, int device) {
  std::snprintf(name, static_cast<std::size_t>(bytes), "%s",
                device == 0 ? "NVIDIA A100-SXM4-80GB" : "Tesla T4");
  return 0;
}
int cuDeviceTotalMem_v2(std::size_t* bytes, int device) {
  *bytes = std::size_t{device == 0 ? 80u : 15u} << 30;
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  const bool major = attribute == 75;
  *value = device == 0 ? (major ? 8 : 0) : (major ? 7 : 5);
  return major || attribute == 76 ? 0 : 1;
}
int cuGetErrorString(int error, const char** words) {
  *words = error == 100 ? "no CUDA-capable device is detected" : nullptr;
  return error == 100 ? 0 : 1;
}
}
