// part: one GGUF file, mapped and checked. A model consists of one such file or of several.
//
// A plain value once opened. Counts, lengths, types, shapes, offsets, alignment and overlaps have
// been checked, so everything that it hands out lies inside the file. Tensor names have not been
// checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/checkpoint/checkpoint.hpp"
#include "models/checkpoint/gguf/kinds.hpp"
#include "models/checkpoint/gguf/metadata.hpp"
#include "models/checkpoint/mapped_file.hpp"

namespace twill::models::gguf {

class cursor;

struct part_tensor {
  tensor_info info;
  const kind_info* kind = nullptr; ///< nullptr when the id is unknown
  std::uint64_t offset = 0;        ///< from the start of the data section
  std::span<const std::byte> bytes;
};

class part {
public:
  /// Fails with file_unreadable, bad_format, bad_metadata or unsupported; the detail names the
  /// path.
  static result<part> open(const std::string& path);

  const std::shared_ptr<const mapped_file>& mapping() const { return mapping_; }
  std::uint32_t version() const { return version_; }
  const metadata& meta() const { return meta_; }
  metadata take_meta() { return std::move(meta_); }
  const std::vector<part_tensor>& tensors() const { return tensors_; } ///< in file order

private:
  result<nothing> parse();
  result<nothing> parse_tensors(cursor& in, std::uint64_t count);
  result<nothing> place_tensors(const cursor& in);
  /// Fails when what follows the header's entries is another entry.
  result<nothing> check_is_last(cursor in, std::uint64_t align) const;
  result<nothing> check_overlaps() const;

  std::shared_ptr<const mapped_file> mapping_;
  std::uint32_t version_ = 0;
  metadata meta_;
  std::vector<part_tensor> tensors_;
};

} // namespace twill::models::gguf
