// memory_text: describes in words what a daemon's memory is reserved for and how much of it has
// been touched. All commands of `twill` use this wording. The functions are pure.
//
// Reserved memory is device memory set aside for weights, KV blocks and steps (the buffers of a
// forward pass). On a host device it is only address space, of which the system assigns a page of
// memory when the page is first written. Touched memory is the part that has been written. On a
// host device it is part of the resident memory of the process.
#pragma once

#include <string>

namespace twill::tools {

/// Byte counts of one model or of all models.
struct device_memory {
  double reserved = 0, touched = 0;
  double weights = 0, kv = 0; ///< parts of `reserved`; the rest of it is for steps

  void add(const device_memory& more);
};

/// Byte counts of a daemon's process.
struct process_memory {
  double resident = 0;
  double device = 0;       ///< touched device memory when the device is the host, otherwise 0
  double mapped_files = 0; ///< resident pages of mapped files, such as model files
};

/// For example "5.76 GiB reserved (weights 94.1 MiB, KV 5.60 GiB, steps 66.0 MiB), 121 MiB of it
/// touched".
std::string memory_text(const device_memory& of);
/// The reserved and touched bytes, without the parts for weights, KV and steps.
std::string short_memory_text(const device_memory& of);
/// For example "149 MiB resident (models 121 MiB, files 18.0 MiB, the rest 10.0 MiB)".
std::string memory_text(const process_memory& of);

} // namespace twill::tools
