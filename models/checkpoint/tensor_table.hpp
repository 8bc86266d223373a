// tensor_table: named tensors inside mapped files, as a checkpoint.
//
// The safetensors and PyTorch readers fill one table for all shards of a model. It is immutable
// once filled; any thread may read. A reader checks a tensor's bytes against its file and shape
// before it adds the tensor, and the table keeps the files mapped. Only tensors of floating-point
// types can be read as weights. Tensors of integers are listed too; models/checkpoint/quant decodes
// those that are parts of GPTQ or AWQ matrices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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
  /// Adds a tensor unless it is a derived one (derived_tensor.hpp); fails with bad_format when the
  /// table has one of its name.
  result<nothing> add(stored_tensor tensor);
  /// Notes that an index file names a tensor that no shard has.
  void note_absent(std::string name) { absent_.insert(std::move(name)); }

  std::vector<tensor_info> tensors() const override;
  const tensor_info* find(std::string_view name) const override;
  bool lists(std::string_view name) const override;
  result<gpu::weight_source> matrix(std::string_view name) const override;
  result<std::vector<float>> vector(std::string_view name) const override;
  void read_ahead(std::string_view name) const override;
  void release(std::string_view name) const override;

  /// The stored tensor of that name, which is also read ahead; fails with missing_tensor.
  result<const stored_tensor*> stored(std::string_view name) const;
  /// The stored tensor of that name, not read ahead; nullptr when there is none.
  const stored_tensor* peek(std::string_view name) const;
  /// The files of all tensors, each once.
  std::vector<std::shared_ptr<const mapped_file>> files() const;

private:
  std::vector<stored_tensor> tensors_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::set<std::string, std::less<>> absent_;
};

/// The shape as messages write it: "(5120, 13824)".
std::string shape_text(const std::vector<std::int64_t>& shape);

/// The failure of a tensor whose elements cannot be weights.
failure not_numbers(const tensor_info& tensor);

/// The number of values of a shape; -1 when an extent is negative or the bytes would exceed 2^60.
std::int64_t value_count(const std::vector<std::int64_t>& shape);

} // namespace twill::models
