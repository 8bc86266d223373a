// checkpoint: the interface to the weights of a mapped model file or folder. It returns typed
// tensors without copying them.
//
// Immutable after opening; any thread may read. Addresses stay valid while the checkpoint lives.
// All addresses that it returns were checked to lie inside the file.
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
  std::int64_t bytes = 0;          ///< bytes of the tensor in the file
};

class checkpoint {
public:
  virtual ~checkpoint() = default;
  virtual std::vector<tensor_info> tensors() const = 0;
  /// The tensor of that name; nullptr when there is none.
  virtual const tensor_info* find(std::string_view name) const = 0;
  /// Whether the checkpoint has the tensor, or an index file lists it although no shard has it.
  virtual bool lists(std::string_view name) const { return find(name) != nullptr; }
  /// A matrix as a weight source that refers to this checkpoint's memory. // (shape[0], shape[1])
  virtual result<gpu::weight_source> matrix(std::string_view name) const = 0;
  /// A small tensor (norm weights, biases) as f32. // (product of shape)
  virtual result<std::vector<float>> vector(std::string_view name) const = 0;
  /// Announces that the tensor, and then what follows it in its file, will be read soon, so that
  /// both may be fetched in the background. matrix() does not do this by itself. Unknown names are
  /// ignored.
  virtual void read_ahead(std::string_view /*name*/) const {}
  /// Announces that the tensor will not be read again soon, so that the tensor's mapped pages may
  /// be removed from this process's memory. Weight sources that matrix() returned stay valid: their
  /// bytes are then read from the file again. Unknown names are ignored.
  virtual void release(std::string_view /*name*/) const {}
};

} // namespace twill::models
