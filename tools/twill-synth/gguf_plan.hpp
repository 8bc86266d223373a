// gguf_plan: the tensors of a recipe as llama.cpp's converter would write them.
//
// Plain values and pure functions. A tensor of the file is some rows of a planned tensor, under
// another name and perhaps in another order; write_gguf makes the bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/synth/plan.hpp"
#include "tools/twill-synth/names.hpp"

namespace twill::synth {

struct gguf_tensor {
  std::string name;
  planned_tensor source;
  std::int64_t first_row = 0; ///< of the source
  std::int64_t n_rows = 0;
  /// Size of heads whose halves' rows take turns, so that rotary pairs lie side by side; 0: as is.
  std::int64_t paired_head = 0;
  bool unit_rows = false; ///< each row is brought to length 1

  bool is_vector() const { return source.shape.size() == 1; }
  std::int64_t row_values() const { return source.row_values(); }
  std::int64_t values() const { return n_rows * row_values(); }
  /// The row of the source that stands in row `row`.
  std::int64_t source_row(std::int64_t row) const;
};

/// What general.architecture says of the recipe's family; `unsupported` for families, packings and
/// shapes that llama.cpp has no architecture for.
result<std::string> gguf_architecture(const recipe& r);

/// In the order in which the file holds them. The recipe must have an architecture.
std::vector<gguf_tensor> plan_gguf(const recipe& r);

} // namespace twill::synth
