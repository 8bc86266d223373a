// memory_text: what a daemon's memory is reserved for, and what of it is touched, in the words that
// all of `twill` uses. Pure.
//
// Reserved is device memory that is set aside for weights, KV and steps: on a host address space,
// of which the system takes a page when it is first written. Touched is what was written. On a
// host the touched memory is part of what is resident of the process.
#pragma once

#include <string>

namespace twill::tools {

/// Bytes of one model, or of all.
struct device_memory {
  double reserved = 0, touched = 0;
  double weights = 0, kv = 0; ///< of those reserved; steps have the rest

  void add(const device_memory& more);
};

/// Bytes of a daemon's process.
struct process_memory {
  double resident = 0;
  double device = 0;       ///< touched device memory, where the device is the host
  double mapped_files = 0; ///< pages of mapped files, such as a model's
};

/// "5.76 GiB reserved (weights 94.1 MiB, KV 5.60 GiB, steps 66.0 MiB), 121 MiB of it touched".
std::string memory_text(const device_memory& of);
/// The same without what it is reserved for.
std::string short_memory_text(const device_memory& of);
/// "149 MiB resident (models 121 MiB, files 18.0 MiB, the rest 10.0 MiB)".
std::string memory_text(const process_memory& of);

} // namespace twill::tools
