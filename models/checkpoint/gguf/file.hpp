// file: a GGUF file (version 2 or 3, little-endian), mapped and checked, as a checkpoint.
//
// Immutable after open(); any thread may read. Everything that is handed out lies inside the file:
// counts, lengths, types, shapes, offsets, alignment and overlaps have been checked. Derived
// tensors (derived_tensor.hpp) are left out. Kinds that twill does not read are listed, and refused
// with `unsupported` when asked for. Format:
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/checkpoint/checkpoint.hpp"
#include "models/checkpoint/gguf/kinds.hpp"
#include "models/checkpoint/gguf/metadata.hpp"
#include "models/checkpoint/mapped_file.hpp"

namespace twill::models::gguf {

class cursor;

class file final : public checkpoint {
public:
  static result<std::shared_ptr<const file>> open(const std::string& path);

  std::uint32_t version() const { return version_; }
  const metadata& meta() const { return meta_; }
  const std::shared_ptr<const mapped_file>& mapping() const { return mapping_; }

  std::vector<tensor_info> tensors() const override;
  const tensor_info* find(std::string_view name) const override;
  result<gpu::weight_source> matrix(std::string_view name) const override;
  result<std::vector<float>> vector(std::string_view name) const override;
  void read_ahead(std::string_view name) const override;
  void release(std::string_view name) const override;

private:
  struct tensor {
    tensor_info info;
    const kind_info* kind = nullptr; ///< nullptr when the id is unknown
    std::uint64_t offset = 0;        ///< from the start of the data section
  };

  file() = default;
  result<nothing> parse();
  result<nothing> parse_tensors(cursor& in, std::uint64_t count);
  result<nothing> place_tensors(std::uint64_t headers_end);
  result<nothing> check_overlaps() const;
  void leave_out_derived();
  result<const tensor*> require(std::string_view name) const;
  std::span<const std::byte> bytes_of(const tensor& t) const;

  std::shared_ptr<const mapped_file> mapping_;
  std::uint32_t version_ = 0;
  metadata meta_;
  std::vector<tensor> tensors_; ///< in file order
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::span<const std::byte> data_; ///< the data section
};

} // namespace twill::models::gguf
