// stored_parts: cuts a file into the parts that `twill-bench disk` reads, each at most as long as
// one read of weights that are offloaded to disk. Holes of a sparse file, and space that was
// reserved but never written, are left out: reading them costs no disk time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace twill::bench {

struct stored_part {
  std::int64_t offset = 0, bytes = 0; ///< multiples of store_alignment
};

/// Returns the parts in ascending order. Bytes after the last multiple of store_alignment (4096),
/// the unit of direct reads, are left out. Throws std::runtime_error when the file does not exist
/// or holds no data.
std::vector<stored_part> stored_parts(const std::string& path);

} // namespace twill::bench
