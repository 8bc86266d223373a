// A pickle machine that knows state dictionaries of tensors and nothing else.
//
// Nothing is ever imported, called or executed: the few names that torch.save writes for tensors
// are constants here, any other name or opcode is `unsupported`, named in the detail. Pure. Memory
// is bounded by the pickle's size and by max_objects; nothing recurses.
// Opcodes: Python's pickletools (protocols 2 to 4).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "models/errc.hpp"

namespace twill::models::pytorch {

inline constexpr std::size_t max_objects = std::size_t{1} << 22;

struct pickled_tensor {
  std::string_view name;       ///< refers to the pickle, like all text here
  const char* element;         ///< "F16", ...
  std::string_view storage;    ///< key of the storage: entry "data/<key>" of the archive
  std::int64_t storage_values; ///< values in the storage
  std::int64_t offset;         ///< of the first value, in values
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides; ///< in values
};

/// The tensors of a pickled dictionary from names to tensors, in its order.
result<std::vector<pickled_tensor>> unpickle_tensors(std::span<const std::byte> pickle);

} // namespace twill::models::pytorch
