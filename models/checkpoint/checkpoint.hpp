// checkpoint: a model file (or folder), mapped, with typed tensors handed out without copying.
//
// Immutable after opening; any thread may read. Addresses stay valid while the checkpoint lives.
// Everything that a reader hands out has been checked against the file's size.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/linear/packed_matrix.hpp"
#include "models/errc.hpp"

namespace twill::models {

struct tensor_info {
  std::string name;
  std::vector<std::int64_t> shape; ///< outermost first
  std::string type;                ///< the file's own name: "F32", "Q4_1", ...
  std::int64_t bytes = 0;          ///< in the file
};

class checkpoint {
public:
  virtual ~checkpoint() = default;
  virtual std::vector<tensor_info> tensors() const = 0;
  /// nullptr when absent.
  virtual const tensor_info* find(std::string_view name) const = 0;
  /// A matrix as a weight source; refers to this checkpoint's memory. // (shape[0], shape[1])
  virtual result<gpu::weight_source> matrix(std::string_view name) const = 0;
  /// A small tensor (norm weights, biases) as f32. // (product of shape)
  virtual result<std::vector<float>> vector(std::string_view name) const = 0;
  /// The tensor will be read soon, and what follows it in its file: both may be fetched ahead, in
  /// the background. matrix() fetches nothing by itself. Unknown names are ignored.
  virtual void read_ahead(std::string_view /*name*/) const {}
  /// The tensor will not be read again soon; its memory may leave this process. Sources of it stay
  /// valid. Unknown names are ignored.
  virtual void release(std::string_view /*name*/) const {}
};

} // namespace twill::models
