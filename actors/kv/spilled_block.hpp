// spilled_block: a KV block off the device, as actors pass it on.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "actors/kv/block_key.hpp"

namespace twill::actors {

/// Host memory for the bytes of one block. It returns to its pool (offloader/host_pool.hpp) when
/// the last holder lets go; its bytes do not change once it was handed on.
using host_block = std::shared_ptr<unsigned char>;

/// What a block holds, without its bytes.
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
