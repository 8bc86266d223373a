// tensor_table: named tensors inside mapped files, as a checkpoint.
//
// What the safetensors and PyTorch readers fill, one table for all shards of a model. Immutable
// once filled; any thread may read. A reader checks a tensor's bytes against its file and shape
// before it adds it; the table keeps the files mapped. Dense kinds only: integers are listed, and
// handed out as bytes() to those who know what they mean (models/checkpoint/quant).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/checkpoint/checkpoint.hpp"
#include "models/checkpoint/element.hpp"
#include "models/checkpoint/mapped_file.hpp"

namespace twill::models {

struct stored_tensor {
  tensor_info info;
  const element_info* element = nullptr;
  std::span<const std::byte> bytes; ///< inside `file`; row-major, little-endian, any alignment
  std::shared_ptr<const mapped_file> file;
};

class tensor_table final : public checkpoint {
public:
  /// Adds a tensor; a name that is there already is bad_format.
  result<nothing> add(stored_tensor tensor);

  std::vector<tensor_info> tensors() const override;
  const tensor_info* find(std::string_view name) const override;
  result<gpu::weight_source> matrix(std::string_view name) const override;
  result<std::vector<float>> vector(std::string_view name) const override;
  void read_ahead(std::string_view name) const override;
  void release(std::string_view name) const override;

  /// The tensor itself; missing_tensor when absent.
  result<const stored_tensor*> stored(std::string_view name) const;
  /// The same without reading ahead; nullptr when absent.
  const stored_tensor* peek(std::string_view name) const;

private:
  std::vector<stored_tensor> tensors_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
};

/// "(5120, 13824)".
std::string shape_text(const std::vector<std::int64_t>& shape);

/// The failure of a tensor whose elements cannot be weights.
failure not_numbers(const tensor_info& tensor);

/// Number of values of a shape; -1 when an extent is negative or the bytes pass 2^60.
std::int64_t value_count(const std::vector<std::int64_t>& shape);

} // namespace twill::models
