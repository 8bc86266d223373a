#include "models/offload/job/micro_batch_state.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace twill::models::offload {

free_kv_blocks::free_kv_blocks(std::int32_t n_blocks) : free_(static_cast<std::size_t>(n_blocks)) {
  std::iota(free_.rbegin(), free_.rend(), 0);
}

std::int32_t free_kv_blocks::take() {
  const std::int32_t id = free_.back();
  free_.pop_back();
  return id;
}

void free_kv_blocks::give(std::vector<std::int32_t>& blocks) {
  free_.insert(free_.end(), blocks.begin(), blocks.end());
  blocks.clear();
}

staged_ranges ranges_of(std::span<const job_sequence> sequences, std::int32_t block_tokens) {
  staged_ranges ranges;
  for (const job_sequence& s : sequences) {
    if (s.done) continue;
    const std::int32_t end = s.in_prefill() ? s.prompt_length() : s.length + 1;
    const std::int32_t full = s.length / block_tokens, now_full = end / block_tokens;
    if (s.length > 0)
      ranges.used.push_back({s.index, 0, full, s.length % block_tokens != 0, false});
    ranges.written.push_back(
        {s.index, full, now_full - full, end % block_tokens != 0, s.length > 0 && now_full > full});
  }
  return ranges;
}

bool step_builder::add(job_sequence& s, std::int32_t n) {
  const std::int32_t end = s.length + n;
  while (static_cast<std::int32_t>(s.blocks.size()) * block_tokens_ < end) {
    if (blocks_.empty()) return false;
    s.blocks.push_back(blocks_.take());
  }
  step_.first_token.push_back(rows());
  for (std::int32_t p = s.length; p < end; ++p) {
    step_.tokens.push_back(p < s.prompt_length() ? s.prompt->ids[static_cast<std::size_t>(p)]
                                                 : s.output->ids.back());
    step_.positions.push_back(p);
  }
  s.length = end;
  step_.kv_lengths.push_back(end);
  step_.prompt_lengths.push_back(s.prompt_length());
  rows_of_.push_back(&s);
  if (!s.in_prefill()) {
    step_.logit_rows.push_back(rows() - 1);
    step_.drawing.push_back(&s);
  }
  return true;
}

job_step step_builder::finish() {
  step_.first_token.push_back(rows());
  std::size_t widest = 0;
  for (const job_sequence* s : rows_of_)
    widest = std::max(widest, s->blocks.size());
  step_.max_blocks = static_cast<std::int32_t>(widest);
  for (const job_sequence* s : rows_of_) {
    step_.block_table.insert(step_.block_table.end(), s->blocks.begin(), s->blocks.end());
    step_.block_table.resize(step_.block_table.size() + widest - s->blocks.size(), 0);
    // In staged layers, whose KV is not in the decoder's kv_arena, the partial block (a sequence's
    // last block while it is not full, see streams/kv_backing.hpp) has a number of its own. While
    // the prompt is computed, the partial block is the block of the prompt's last tokens, if they
    // do not fill a block; afterwards it is the block that gets the drawn tokens.
    const bool prompt = s->length <= s->prompt_length();
    const std::int32_t partial_block =
        (prompt ? s->prompt_length() : s->length - 1) / block_tokens_;
    for (std::int32_t b = 0; numbering_.sequences > 0 && b < step_.max_blocks; ++b)
      step_.staged_table.push_back(
          (b == partial_block ? numbering_.n_blocks : b * numbering_.sequences) + s->index);
  }
  rows_of_.clear();
  return std::exchange(step_, {});
}

void take_token(job_sequence& s, std::int32_t id, const job_options& options,
                free_kv_blocks& blocks) {
  const bool ends =
      std::find(options.end_ids.begin(), options.end_ids.end(), id) != options.end_ids.end();
  if (!ends) s.output->ids.push_back(id);
  if (!ends && static_cast<std::int32_t>(s.output->ids.size()) < s.prompt->max_new) return;
  s.output->finish = ends ? job_finish::stop : job_finish::length;
  s.done = true;
  blocks.give(s.blocks);
}

} // namespace twill::models::offload
