// unpickle: reads a pickled dictionary of tensors, and nothing else.
//
// Nothing is imported, called or executed: the few names that torch.save writes for tensors are
// constants here, and any other name or opcode fails with `unsupported` and is named in the detail.
// The functions are pure. Memory is bounded by the pickle's size and by max_objects, and nothing
// recurses. The opcodes are those of Python's pickletools (protocols 2 to 4).
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
  std::string_view name;       ///< all texts refer to the pickle
  const char* element;         ///< "F16", ...
  std::string_view storage;    ///< key of the storage: entry "data/<key>" of the archive
  std::int64_t storage_values; ///< number of values in the storage
  std::int64_t offset;         ///< of the first value, counted in values
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides; ///< counted in values
};

/// The tensors of a pickled dictionary from names to tensors, in its order.
result<std::vector<pickled_tensor>> unpickle_tensors(std::span<const std::byte> pickle);

} // namespace twill::models::pytorch
