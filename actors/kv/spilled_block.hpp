// spilled_block: a KV block in host memory, as actors pass it to each other.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "actors/kv/block_key.hpp"

namespace twill::actors {

/// Host memory for the bytes of one block. The memory returns to its pool (offloader/host_pool.hpp)
/// when the last owner releases it. Its bytes do not change once it was passed on.
using host_block = std::shared_ptr<unsigned char>;

/// The identity of a block: its names and tokens, without its bytes.
struct block_identity {
  block_key key;
  block_key parent;
  std::vector<std::int32_t> tokens; // (block_tokens)
};

/// A block of the device whose bytes are to be copied to host memory before a step writes to it.
struct block_spill {
  std::int32_t block = 0;
  block_identity identity;
  host_block to;
};

/// Host bytes to be copied into a block of the device before a step reads it.
struct block_load {
  std::int32_t block = 0;
  host_block from;
};

} // namespace twill::actors
