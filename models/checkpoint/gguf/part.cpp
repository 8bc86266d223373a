#include "models/checkpoint/gguf/part.hpp"

#include <algorithm>
#include <utility>

#include "models/checkpoint/element.hpp"
#include "models/checkpoint/gguf/cursor.hpp"
#include "models/checkpoint/gguf/read_metadata.hpp"
#include "models/checkpoint/quoted.hpp"

namespace twill::models::gguf {
namespace {

constexpr std::uint32_t magic = 0x46554747; // "GGUF"
constexpr std::uint64_t least_pair_bytes = 8 + 4 + 1;
constexpr std::uint64_t least_tensor_bytes = 8 + 4 + 8 + 4 + 8;
constexpr std::uint32_t max_dimensions = 4;

failure bad_format(std::string detail) {
  return {errc::bad_format, std::move(detail)};
}

failure bad_tensor_header(std::string_view name, const std::string& why) {
  return bad_format("tensor " + quoted_name(name) + ": " + why);
}

/// Sets `info.bytes`. Fails if the innermost dimension is not a whole number of blocks.
result<nothing> measure(tensor_info& info, const kind_info* kind, std::int64_t n_values) {
  if (kind == nullptr || kind->block_bytes == 0) return nothing{};
  if (info.shape.back() % kind->block_values != 0)
    return bad_tensor_header(info.name, "rows of kind " + info.type + " must hold a multiple of " +
                                            std::to_string(kind->block_values) + " values, got " +
                                            std::to_string(info.shape.back()));
  info.bytes = n_values / kind->block_values * kind->block_bytes;
  return nothing{};
}

/// Reads one tensor entry of the header. `which` describes the entry in messages before its name is
/// known.
result<part_tensor> read_tensor(cursor& in, const std::string& which) {
  part_tensor t;
  t.info.name = in.read_string();
  const auto n_dims = in.read<std::uint32_t>();
  if (in.failed() || t.info.name.empty())
    return bad_format(which + ": the name is empty or passes the end of the file");
  if (n_dims < 1 || n_dims > max_dimensions)
    return bad_tensor_header(t.info.name, "dimensions must be 1..4, got " + std::to_string(n_dims));
  std::int64_t n_values = 1;
  for (std::uint32_t d = 0; d < n_dims; ++d) {
    const auto extent = in.read<std::uint64_t>();
    // The number of bytes, at most 4 per value, must be representable too.
    constexpr auto most = std::uint64_t{1} << 60;
    if (!in.failed() && (extent == 0 || extent > most / static_cast<std::uint64_t>(n_values)))
      return bad_tensor_header(t.info.name,
                               "a dimension of " + std::to_string(extent) + " is impossible");
    n_values *= std::max<std::int64_t>(1, static_cast<std::int64_t>(extent));
    // The file lists the innermost dimension first.
    t.info.shape.insert(t.info.shape.begin(), static_cast<std::int64_t>(extent));
  }
  const auto kind_id = in.read<std::uint32_t>();
  t.offset = in.read<std::uint64_t>();
  if (in.failed()) return bad_tensor_header(t.info.name, "the file ends inside its header");
  t.kind = find_kind(kind_id);
  t.info.type = t.kind != nullptr ? t.kind->name : "kind " + std::to_string(kind_id);
  if (auto measured = measure(t.info, t.kind, n_values); !measured.ok()) return measured.error();
  return t;
}

} // namespace

result<part> part::open(const std::string& path) {
  auto mapping = mapped_file::open(path);
  if (!mapping.ok()) return mapping.error();
  part opened;
  opened.mapping_ = std::move(mapping).value();
  if (auto parsed = opened.parse(); !parsed.ok()) return in_file(path, parsed.error());
  return opened;
}

result<nothing> part::parse() {
  cursor in(mapping_->bytes());
  const auto found_magic = in.read<std::uint32_t>();
  version_ = in.read<std::uint32_t>();
  if (in.failed() || found_magic != magic) return bad_format("not a GGUF file (no GGUF magic)");
  if (version_ != 0 && (version_ & 0xffffU) == 0)
    return failure{errc::unsupported, "big-endian GGUF files are not supported"};
  if (version_ != 2 && version_ != 3)
    return failure{errc::unsupported,
                   "GGUF version must be 2 or 3, got " + std::to_string(version_)};

  const auto n_tensors = in.read<std::uint64_t>();
  const auto n_pairs = in.read<std::uint64_t>();
  if (in.failed()) return bad_format("the file ends inside its header");
  if (n_pairs > in.remaining() / least_pair_bytes)
    return bad_format(std::to_string(n_pairs) + " metadata keys do not fit the file");
  if (n_tensors > in.remaining() / least_tensor_bytes)
    return bad_format(std::to_string(n_tensors) + " tensors do not fit the file");

  auto meta = read_metadata(in, n_pairs);
  if (!meta.ok()) return meta.error();
  meta_ = std::move(meta).value();
  if (auto read = parse_tensors(in, n_tensors); !read.ok()) return read;
  if (auto placed = place_tensors(in); !placed.ok()) return placed;
  return check_overlaps();
}

result<nothing> part::parse_tensors(cursor& in, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    auto t = read_tensor(in, "tensor " + std::to_string(i) + " of " + std::to_string(count));
    if (!t.ok()) return t.error();
    tensors_.push_back(std::move(t).value());
  }
  return nothing{};
}

// If the count of tensors is too small, the entries that it omits would be taken for the first
// bytes of tensor data, and all tensors would have wrong bytes. This check therefore tries to read
// one more entry. In a correct file the bytes there are zero padding or tensor data, which do not
// look like a name, a kind and an offset that fits.
result<nothing> part::check_is_last(cursor in, std::uint64_t align) const {
  const auto more = read_tensor(in, "padding");
  if (!more.ok() || more.value().kind == nullptr) return nothing{};
  const part_tensor& t = more.value();
  if (t.offset % align != 0 || t.offset > in.remaining()) return nothing{};
  return bad_tensor_header(t.info.name, "the header counts " + std::to_string(tensors_.size()) +
                                            " tensors, and lists this one behind them");
}

result<nothing> part::place_tensors(const cursor& in) {
  auto alignment = meta_.get_int_or("general.alignment", 8, 1 << 20, 32);
  if (!alignment.ok()) return alignment.error();
  const auto align = static_cast<std::uint64_t>(alignment.value());
  if ((align & (align - 1)) != 0)
    return failure{errc::bad_metadata,
                   "`general.alignment` must be a power of two, got " + std::to_string(align)};
  if (auto last = check_is_last(in, align); !last.ok()) return last;

  const std::span<const std::byte> all = mapping_->bytes();
  const std::uint64_t start = (in.position() + align - 1) / align * align;
  const auto data = start < all.size() ? all.subspan(start) : std::span<const std::byte>{};
  for (part_tensor& t : tensors_) {
    if (t.offset % align != 0)
      return bad_tensor_header(t.info.name, "the offset must be a multiple of " +
                                                std::to_string(align) + ", got " +
                                                std::to_string(t.offset));
    if (t.offset > data.size() || static_cast<std::uint64_t>(t.info.bytes) > data.size() - t.offset)
      return bad_tensor_header(t.info.name, std::to_string(t.info.bytes) + " bytes at offset " +
                                                std::to_string(t.offset) +
                                                " pass the end of the data (" +
                                                std::to_string(data.size()) + " bytes)");
    t.bytes = data.subspan(t.offset, static_cast<std::size_t>(t.info.bytes));
  }
  return nothing{};
}

// Without this check, many tensors of a small file could refer to the same bytes. Each of them
// would be packed separately, so loading would take far more memory than the file's size suggests.
result<nothing> part::check_overlaps() const {
  std::vector<const part_tensor*> by_offset;
  by_offset.reserve(tensors_.size());
  for (const part_tensor& t : tensors_)
    if (t.info.bytes > 0) by_offset.push_back(&t);
  std::sort(by_offset.begin(), by_offset.end(),
            [](const part_tensor* a, const part_tensor* b) { return a->offset < b->offset; });
  for (std::size_t i = 1; i < by_offset.size(); ++i) {
    const part_tensor& before = *by_offset[i - 1];
    if (by_offset[i]->offset < before.offset + static_cast<std::uint64_t>(before.info.bytes))
      return bad_tensor_header(by_offset[i]->info.name,
                               "overlaps tensor " + quoted_name(before.info.name));
  }
  return nothing{};
}

} // namespace twill::models::gguf
