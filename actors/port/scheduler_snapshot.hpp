// scheduler_snapshot: what the scheduler of a model does at one moment, for administrators. A plain
// value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/port/request_error.hpp"

namespace twill::actors {

/// Which sequences run and wait, and which KV blocks each of them holds, at one moment. Lists of
/// blocks are texts such as "0-12,40".
struct scheduler_snapshot {
  struct sequence {
    std::uint64_t id = 0;
    request_id request = 0;
    std::int32_t choice = 0;
    std::string tenant;
    std::string client_id; ///< request::client_id
    bool running = false;
    bool paused = false;         ///< the sequence is paused, because its client reads slowly
    std::int32_t tokens = 0;     ///< tokens of prompt and output so far
    std::int32_t max_tokens = 0; ///< the most tokens that prompt and output may have
    std::string blocks;          ///< the sequence's blocks, in the order of its positions
    std::int64_t n_blocks = 0;
  };
  std::string model;
  std::vector<sequence> sequences; ///< in order of arrival
  std::vector<sequence> orphans;   ///< sequences that hold blocks but belong to no request: a leak
  std::int64_t total_blocks = 0;
  std::int64_t used_blocks = 0;
  std::int64_t free_blocks = 0; ///< free blocks, and granted ones that no sequence has yet
  std::string cached;           ///< blocks that no sequence uses and that stay cached as prefixes
  /// Blocks that no sequence holds, but that must stay because a block after them in the prefix
  /// tree is in use.
  std::string pinned_by_child;
};

} // namespace twill::actors
