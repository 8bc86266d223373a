#include "tools/twill/memory_text.hpp"

#include <algorithm>
#include <cstdint>

#include "config/base/units.hpp"

namespace twill::tools {
namespace {

std::string bytes(double count) {
  return format_bytes(static_cast<std::int64_t>(std::max(count, 0.0)));
}

} // namespace

void device_memory::add(const device_memory& more) {
  reserved += more.reserved;
  touched += more.touched;
  weights += more.weights;
  kv += more.kv;
}

std::string memory_text(const device_memory& of) {
  return bytes(of.reserved) + " reserved (weights " + bytes(of.weights) + ", KV " + bytes(of.kv) +
         ", steps " + bytes(of.reserved - of.weights - of.kv) + "), " + bytes(of.touched) +
         " of it touched";
}

std::string short_memory_text(const device_memory& of) {
  return bytes(of.reserved) + " reserved, " + bytes(of.touched) + " of it touched";
}

std::string memory_text(const process_memory& of) {
  return bytes(of.resident) + " resident (models " + bytes(of.device) + ", files " +
         bytes(of.mapped_files) + ", the rest " + bytes(of.resident - of.device - of.mapped_files) +
         ")";
}

} // namespace twill::tools
