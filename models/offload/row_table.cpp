#include "models/offload/row_table.hpp"

#include <algorithm>
#include <bit>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "models/detail/gpu_error.hpp"
#include "models/offload/checksum.hpp"

namespace twill::models::offload {
namespace {

constexpr std::int64_t block_rows = 16;
/// Row blocks that are brought at once, at most: more tokens take several turns.
constexpr std::int64_t most_blocks = 64;

std::uint64_t block_sum(const unsigned char* codes, const unsigned char* scales,
                        const gpu::image_layout& layout) {
  return checksum(codes, layout.code_block_bytes) ^
         std::rotl(checksum(scales, layout.scale_block_bytes), 1);
}

} // namespace

result<std::unique_ptr<row_table>> row_table::create(gpu::device& dev, const weight_homes& homes,
                                                     io_pool& pool,
                                                     const gpu::packed_matrix& packed,
                                                     std::span<const table_part> parts,
                                                     std::int64_t most_rows, ring_stats& moved) {
  std::unique_ptr<row_table> table(new row_table(homes, pool, parts, moved));
  table->layout_ = packed.layout();
  const gpu::image_layout& layout = table->layout_;
  std::vector<unsigned char> image(static_cast<std::size_t>(layout.bytes(1)));
  for (std::int64_t b = 0; b < packed.row_blocks(); ++b) {
    packed.save_image(b, 1, image.data());
    table->sums_.push_back(block_sum(image.data(), image.data() + layout.scales_at(1), layout));
  }
  table->capacity_ = std::min({most_blocks, packed.row_blocks(), most_rows});
  table->small_ = packed.like(table->capacity_ * block_rows);
  auto memory = dev.allocate(static_cast<std::size_t>(layout.bytes(table->capacity_)),
                             "embedding rows on their way");
  if (!memory.ok()) return from_gpu(memory.error());
  table->small_image_ = std::move(memory).value();
  table->small_.place(table->small_image_.data());
  auto ids = dev.allocate(static_cast<std::size_t>(most_rows) * sizeof(std::int32_t), "row ids");
  if (!ids.ok()) return from_gpu(ids.error());
  table->ids_ = std::move(ids).value();
  return table;
}

const table_part& row_table::part_of(std::int64_t block) const {
  const auto after = std::upper_bound(
      parts_.begin(), parts_.end(), block * block_rows,
      [](std::int64_t row, const table_part& part) { return row < part.first_row; });
  return *(after - 1);
}

/// Adds what `wanted_` names of `table`: rows that are not in it count as zeros.
void row_table::add_rows(gpu::device& dev, const gpu::packed_matrix& table, gpu::tensor_ref out) {
  dev.upload(ids_.data(), wanted_.data(), wanted_.size() * sizeof(std::int32_t));
  gpu::embedding(dev, table, static_cast<const std::int32_t*>(ids_.data()), out, !first_);
  first_ = false;
}

result<nothing> row_table::rows(gpu::device& dev, std::span<const std::int32_t> ids,
                                gpu::tensor_ref out) {
  first_ = true;
  wanted_.resize(ids.size());
  for (const table_part& part : parts_) {
    if (home_of(part).where != tier::device) continue;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::int64_t row = ids[i] - part.first_row;
      wanted_[i] = row >= 0 && row < part.matrix.rows() ? static_cast<std::int32_t>(row) : -1;
    }
    add_rows(dev, part.matrix, out);
  }
  std::vector<std::int64_t> blocks;
  for (const std::int32_t id : ids)
    if (home_of(part_of(id / block_rows)).where != tier::device) blocks.push_back(id / block_rows);
  std::sort(blocks.begin(), blocks.end());
  blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
  for (std::size_t at = 0; at < blocks.size(); at += static_cast<std::size_t>(capacity_)) {
    const std::span group = std::span(blocks).subspan(
        at, std::min(blocks.size() - at, static_cast<std::size_t>(capacity_)));
    if (auto passed = from_gpu(last_use_.wait()); !passed.ok()) return passed;
    if (auto got = fetch(group); !got.ok()) return got;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const auto found = std::lower_bound(group.begin(), group.end(), ids[i] / block_rows);
      wanted_[i] = found == group.end() || *found != ids[i] / block_rows
                       ? -1
                       : static_cast<std::int32_t>((found - group.begin()) * block_rows +
                                                   ids[i] % block_rows);
    }
    add_rows(dev, small_, out);
    last_use_.record();
  }
  return nothing{};
}

result<nothing> row_table::fetch(std::span<const std::int64_t> blocks) {
  std::mutex mutex;
  std::optional<failure> why;
  std::vector<io_pool::task> tasks;
  for (std::size_t i = 0; i < blocks.size(); ++i)
    tasks.push_back([&, i](io_worker& worker) {
      const auto got = fetch_block(blocks[i], static_cast<std::int64_t>(i), worker);
      if (got.ok()) return;
      const std::lock_guard lock(mutex);
      if (!why) why = got.error();
    });
  pool_.run_all(std::move(tasks));
  if (why) return *why;
  for (const std::int64_t block : blocks)
    (home_of(part_of(block)).where == tier::host ? moved_.host_bytes : moved_.disk_bytes) +=
        layout_.code_block_bytes + layout_.scale_block_bytes;
  return nothing{};
}

/// Bytes of the store from any offset to `to` of the small image, and to `copy`.
result<nothing> row_table::read_some(std::int64_t from, std::int64_t bytes, std::int64_t to,
                                     std::vector<unsigned char>& copy, io_worker& worker) const {
  copy.clear();
  while (bytes > 0) {
    const std::int64_t begin = from / store_alignment * store_alignment;
    const std::int64_t n = std::min(bytes, transfer_bytes);
    const std::int64_t window = store_aligned(from + n - begin);
    if (auto got = homes_.store()->read(begin, worker.bounce.data(), window); !got.ok()) return got;
    const unsigned char* at = worker.bounce.data() + (from - begin);
    auto copied = worker.copies.to_device(static_cast<unsigned char*>(small_image_.data()) + to, at,
                                          static_cast<std::size_t>(n));
    if (!copied.ok()) return from_gpu(copied);
    copy.insert(copy.end(), at, at + n);
    from += n;
    to += n;
    bytes -= n;
  }
  return nothing{};
}

result<nothing> row_table::fetch_block(std::int64_t block, std::int64_t to,
                                       io_worker& worker) const {
  const table_part& part = part_of(block);
  const home& at = home_of(part);
  const std::int64_t within = block - part.first_row / block_rows;
  const std::int64_t codes = within * layout_.code_block_bytes;
  const std::int64_t scales =
      layout_.scales_at(part.matrix.row_blocks()) + within * layout_.scale_block_bytes;
  const std::int64_t codes_to = to * layout_.code_block_bytes;
  const std::int64_t scales_to = layout_.scales_at(capacity_) + to * layout_.scale_block_bytes;
  homes_.link().pass(layout_.code_block_bytes + layout_.scale_block_bytes);
  if (at.where == tier::host) {
    auto* image = static_cast<unsigned char*>(small_image_.data());
    auto copied = worker.copies.to_device(image + codes_to, at.host + codes,
                                          static_cast<std::size_t>(layout_.code_block_bytes));
    if (copied.ok() && layout_.scale_block_bytes > 0)
      copied = worker.copies.to_device(image + scales_to, at.host + scales,
                                       static_cast<std::size_t>(layout_.scale_block_bytes));
    return from_gpu(copied);
  }
  std::vector<unsigned char> got_codes, got_scales;
  if (auto got =
          read_some(at.store_offset + codes, layout_.code_block_bytes, codes_to, got_codes, worker);
      !got.ok())
    return got;
  if (auto got = read_some(at.store_offset + scales, layout_.scale_block_bytes, scales_to,
                           got_scales, worker);
      !got.ok())
    return got;
  if (block_sum(got_codes.data(), got_scales.data(), layout_) !=
      sums_[static_cast<std::size_t>(block)])
    return failure{errc::bad_format,
                   "offload file (" + homes_.store()->describe() + "): rows from " +
                       std::to_string(block * block_rows) +
                       " of the embedding are not what was written there (checksum)"};
  return nothing{};
}

} // namespace twill::models::offload
