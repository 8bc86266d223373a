#include "models/offload/streams/embedding_reader.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include "models/decoder/gpu_error.hpp"
#include "models/offload/streams/checksum.hpp"
#include "models/offload/streams/disk_store.hpp"

namespace twill::models::offload {
namespace {

std::uint64_t block_sum(const unsigned char* codes, const unsigned char* scales,
                        const gpu::image_layout& layout) {
  return checksum(codes, layout.code_panel_bytes) ^
         std::rotl(checksum(scales, layout.scale_panel_bytes), 1);
}

} // namespace

embedding_reader::embedding_reader(const weight_placement& placement,
                                   std::span<const table_part> parts,
                                   const gpu::packed_matrix& packed)
    : placement_(placement), parts_(parts), layout_(packed.layout()) {
  std::vector<unsigned char> image(static_cast<std::size_t>(layout_.bytes(1)));
  for (std::int64_t b = 0; b < packed.row_panels(); ++b) {
    packed.save_image(b, 1, image.data());
    sums_.push_back(block_sum(image.data(), image.data() + layout_.scales_at(1), layout_));
  }
}

const table_part& embedding_reader::part_of(std::int64_t block) const {
  const auto after = std::upper_bound(
      parts_.begin(), parts_.end(), block * block_rows,
      [](std::int64_t row, const table_part& part) { return row < part.first_row; });
  return *(after - 1);
}

/// Reads bytes of the store at any offset into device memory and into `copy`.
result<nothing> embedding_reader::read_some(std::int64_t from, std::int64_t bytes,
                                            unsigned char* to, std::vector<unsigned char>& copy,
                                            io_worker& worker) const {
  copy.clear();
  while (bytes > 0) {
    const std::int64_t begin = from / store_alignment * store_alignment;
    const std::int64_t n = std::min(bytes, transfer_bytes);
    const std::int64_t window = store_aligned(from + n - begin);
    if (auto read = placement_.store()->read(begin, worker.bounce.data(), window); !read.ok())
      return read;
    const unsigned char* at = worker.bounce.data() + (from - begin);
    auto copied = worker.copies.to_device(to, at, static_cast<std::size_t>(n));
    if (!copied.ok()) return from_gpu(copied);
    copy.insert(copy.end(), at, at + n);
    from += n;
    to += n;
    bytes -= n;
  }
  return nothing{};
}

result<nothing> embedding_reader::read(std::int64_t block, unsigned char* codes,
                                       unsigned char* scales, io_worker& worker) const {
  const table_part& part = part_of(block);
  const weight_location& at = only_location(part);
  const std::int64_t within = block - part.first_row / block_rows;
  const std::int64_t codes_at = within * layout_.code_panel_bytes;
  const std::int64_t scales_at =
      layout_.scales_at(part.matrix.row_panels()) + within * layout_.scale_panel_bytes;
  placement_.link().pass(block_bytes());
  if (at.where == tier::host) {
    auto copied = worker.copies.to_device(codes, at.host + codes_at,
                                          static_cast<std::size_t>(layout_.code_panel_bytes));
    if (copied.ok() && layout_.scale_panel_bytes > 0)
      copied = worker.copies.to_device(scales, at.host + scales_at,
                                       static_cast<std::size_t>(layout_.scale_panel_bytes));
    return from_gpu(copied);
  }
  std::vector<unsigned char> code_bytes, scale_bytes;
  if (auto read = read_some(at.store_offset + codes_at, layout_.code_panel_bytes, codes, code_bytes,
                            worker);
      !read.ok())
    return read;
  if (auto read = read_some(at.store_offset + scales_at, layout_.scale_panel_bytes, scales,
                            scale_bytes, worker);
      !read.ok())
    return read;
  if (block_sum(code_bytes.data(), scale_bytes.data(), layout_) !=
      sums_[static_cast<std::size_t>(block)])
    return failure{errc::bad_format,
                   "offload file (" + placement_.store()->describe() + "): rows from " +
                       std::to_string(block * block_rows) +
                       " of the embedding are not what was written there (checksum)"};
  return nothing{};
}

} // namespace twill::models::offload
