#include "models/offload/streams/embedding_cache.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "gpu/rows/embedding.hpp"
#include "models/decoder/gpu_error.hpp"

namespace twill::models::offload {
namespace {

/// Most row panels of the small table; tokens that need more are read in several turns.
constexpr std::int64_t most_panels = 64;
constexpr std::int64_t block_rows = embedding_reader::block_rows;

bool holds(std::span<const std::int64_t> blocks, std::int64_t block) {
  return std::find(blocks.begin(), blocks.end(), block) != blocks.end();
}

std::int64_t capacity_of(std::int64_t row_panels, std::int64_t most_rows) {
  return std::min({most_panels, row_panels, most_rows});
}

} // namespace

std::int64_t embedding_cache::device_bytes(const gpu::image_layout& image, std::int64_t row_panels,
                                           std::int64_t most_rows) {
  return image.bytes(capacity_of(row_panels, most_rows)) +
         most_rows * static_cast<std::int64_t>(sizeof(std::int32_t));
}

result<std::unique_ptr<embedding_cache>>
embedding_cache::create(gpu::device& dev, const weight_placement& placement, io_pool& pool,
                        const gpu::packed_matrix& packed, std::span<const table_part> parts,
                        std::int64_t most_rows, ring_stats& moved) {
  std::unique_ptr<embedding_cache> table(
      new embedding_cache(embedding_reader(placement, parts, packed), pool, moved));
  const std::int64_t capacity = capacity_of(packed.row_panels(), most_rows);
  table->entries_.resize(static_cast<std::size_t>(capacity));
  table->small_ = packed.like(capacity * block_rows);
  auto memory = dev.allocate(static_cast<std::size_t>(packed.layout().bytes(capacity)),
                             "embedding rows on their way");
  if (!memory.ok()) return from_gpu(memory.error());
  table->small_image_ = std::move(memory).value();
  table->small_.place(table->small_image_.data());
  auto ids = dev.allocate(static_cast<std::size_t>(most_rows) * sizeof(std::int32_t), "row ids");
  if (!ids.ok()) return from_gpu(ids.error());
  table->ids_ = std::move(ids).value();
  return table;
}

embedding_cache::~embedding_cache() {
  std::unique_lock lock(mutex_);
  filled_.wait(lock, [this] {
    return std::none_of(entries_.begin(), entries_.end(), [](const entry& s) { return s.filling; });
  });
}

std::vector<std::int64_t>
embedding_cache::travelling_blocks(std::span<const std::int32_t> ids) const {
  std::vector<std::int64_t> blocks;
  for (const std::int32_t id : ids) {
    const std::int64_t block = id / block_rows;
    if (reader_.tier_of(block) != tier::device && !holds(blocks, block)) blocks.push_back(block);
  }
  return blocks;
}

/// Adds to `out` the rows of `table` whose numbers are in `wanted_`. `table` is the small table of
/// fetched rows or a part of the embedding that is on the device. A number of -1, for a row that is
/// elsewhere, adds zeros.
void embedding_cache::add_rows(gpu::device& dev, const gpu::packed_matrix& table,
                               gpu::tensor_ref out) {
  dev.upload(ids_.data(), wanted_.data(), wanted_.size() * sizeof(std::int32_t));
  gpu::embedding(dev, table, static_cast<const std::int32_t*>(ids_.data()), out, !first_);
  first_ = false;
}

void embedding_cache::prefetch(std::span<const std::int32_t> ids) {
  const std::vector<std::int64_t> blocks = travelling_blocks(ids);
  {
    const std::lock_guard lock(mutex_);
    coming_.clear();
    for (entry& s : entries_)
      s.expected = s.block >= 0 && holds(blocks, s.block);
    for (const std::int64_t block : blocks)
      if (entry_with(block) < 0) coming_.push_back(block);
  }
  fetch_ahead();
}

result<nothing> embedding_cache::rows(gpu::device& dev, std::span<const std::int32_t> ids,
                                      gpu::tensor_ref out) {
  first_ = true;
  wanted_.resize(ids.size());
  for (const table_part& part : reader_.parts()) {
    if (reader_.tier_of(part) != tier::device) continue;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::int64_t row = ids[i] - part.first_row;
      wanted_[i] = row >= 0 && row < part.matrix.rows() ? static_cast<std::int32_t>(row) : -1;
    }
    add_rows(dev, part.matrix, out);
  }
  const std::vector<std::int64_t> blocks = travelling_blocks(ids);
  for (std::size_t at = 0; at < blocks.size(); at += entries_.size()) {
    const std::span group =
        std::span(blocks).subspan(at, std::min(blocks.size() - at, entries_.size()));
    if (auto brought = bring(group); !brought.ok()) return brought;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::int64_t block = ids[i] / block_rows;
      wanted_[i] =
          holds(group, block)
              ? static_cast<std::int32_t>(entry_with(block) * block_rows + ids[i] % block_rows)
              : -1;
    }
    add_rows(dev, small_, out);
    last_use_.record(dev);
  }
  fetch_ahead();
  return nothing{};
}

std::int64_t embedding_cache::entry_with(std::int64_t block) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const entry& s) { return s.block == block; });
  return found == entries_.end() ? -1 : found - entries_.begin();
}

/// The idle entry whose block was wanted longest ago and is not in `keep`; -1 if there is none.
std::int64_t embedding_cache::idle_entry(std::span<const std::int64_t> keep,
                                         bool expected_too) const {
  std::int64_t best = -1;
  const auto before = [](const entry& a, const entry& b) {
    return a.expected != b.expected ? b.expected : a.last < b.last;
  };
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const entry& s = entries_[i];
    if (s.filling || (s.expected && !expected_too) || holds(keep, s.block)) continue;
    if (best < 0 || before(s, entries_[static_cast<std::size_t>(best)]))
      best = static_cast<std::int64_t>(i);
  }
  return best;
}

/// Brings all of `blocks` into the small table, which must have at least as many entries.
result<nothing> embedding_cache::bring(std::span<const std::int64_t> blocks) {
  if (auto passed = from_gpu(last_use_.wait()); !passed.ok()) return passed;
  std::vector<std::int64_t> claimed;
  claimed.reserve(blocks.size()); // so that nothing throws between claim() and post_fetches()
  std::unique_lock lock(mutex_);
  const auto began = std::chrono::steady_clock::now();
  for (const std::int64_t block : blocks) {
    if (entry_with(block) >= 0) continue;
    filled_.wait(lock, [&] { return idle_entry(blocks, true) >= 0; });
    claimed.push_back(idle_entry(blocks, true));
    claim(claimed.back(), block);
  }
  lock.unlock();
  post_fetches(claimed);
  lock.lock();
  const auto entry_of = [this](std::int64_t block) -> entry& {
    return entries_[static_cast<std::size_t>(entry_with(block))];
  };
  filled_.wait(lock, [&] {
    return std::none_of(blocks.begin(), blocks.end(),
                        [&](std::int64_t block) { return entry_of(block).filling; });
  });
  moved_.waited_seconds +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  ++now_;
  for (const std::int64_t block : blocks) {
    entry& s = entry_of(block);
    if (s.why) {
      s.block = -1; // the next call reads the block again
      return *s.why;
    }
    s.expected = false;
    s.last = now_;
  }
  return nothing{};
}

/// Begins to fetch expected blocks into entries that hold no expected block.
void embedding_cache::fetch_ahead() {
  if (coming_.empty() || !last_use_.wait().ok()) return; // rows() reports a lost device
  std::vector<std::int64_t> claimed;
  claimed.reserve(entries_.size()); // so that nothing throws between claim() and post_fetches()
  {
    const std::lock_guard lock(mutex_);
    while (!coming_.empty()) {
      const std::int64_t block = coming_.front();
      if (const std::int64_t holder = entry_with(block); holder >= 0) {
        entries_[static_cast<std::size_t>(holder)].expected = true;
      } else {
        const std::int64_t at = idle_entry({}, false);
        if (at < 0) break;
        claim(at, block);
        entries_[static_cast<std::size_t>(at)].expected = true;
        claimed.push_back(at);
      }
      coming_.pop_front();
    }
  }
  post_fetches(claimed);
}

void embedding_cache::claim(std::int64_t at, std::int64_t block) {
  entry& s = entries_[static_cast<std::size_t>(at)];
  s.block = block;
  s.filling = true;
  s.why.reset();
  (reader_.tier_of(block) == tier::host ? moved_.host_bytes : moved_.disk_bytes) +=
      reader_.block_bytes();
}

/// Queues fetches of row blocks (16 rows of the embedding). `claimed` has the numbers of the
/// entries of the small table to which they are fetched. The fetches go before all waiting
/// transfers of weights, because the next op needs the rows. If memory is short, the entries have a
/// failure as after a failed fetch.
void embedding_cache::post_fetches(const std::vector<std::int64_t>& claimed) {
  if (claimed.empty()) return;
  try {
    std::vector<io_pool::task> all;
    for (const std::int64_t at : claimed)
      all.push_back([this, at](io_worker& worker) { fetch(at, worker); });
    pool_.post_all(std::move(all), true);
  } catch (const std::bad_alloc&) { // nothing was posted
    const std::lock_guard lock(mutex_);
    for (const std::int64_t at : claimed) {
      entry& s = entries_[static_cast<std::size_t>(at)];
      s.filling = false;
      s.why = failure{errc::out_of_memory, std::string("no memory to fetch embedding rows")};
    }
    filled_.notify_all();
  }
}

void embedding_cache::fetch(std::int64_t at, io_worker& worker) {
  entry& s = entries_[static_cast<std::size_t>(at)];
  const gpu::image_layout layout = small_.layout();
  auto* image = static_cast<unsigned char*>(small_image_.data());
  const auto fetched =
      reader_.read(s.block, image + at * layout.code_panel_bytes,
                   image + layout.scales_at(static_cast<std::int64_t>(entries_.size())) +
                       at * layout.scale_panel_bytes,
                   worker);
  const std::lock_guard lock(mutex_);
  if (!fetched.ok()) s.why = fetched.error();
  s.filling = false;
  filled_.notify_all();
}

} // namespace twill::models::offload
