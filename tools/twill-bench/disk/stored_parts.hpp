// stored_parts: how a file is cut for reading as the disk tier reads: where it holds data, in parts
// of no more than a transfer. Holes and space that was only taken cost a disk nothing to read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace twill::bench {

struct stored_part {
  std::int64_t offset = 0, bytes = 0; ///< multiples of store_alignment
};

/// Ascending. What is left of the file behind the last multiple is not read. Throws
/// std::runtime_error: no such file, or it holds nothing to read.
std::vector<stored_part> stored_parts(const std::string& path);

} // namespace twill::bench
