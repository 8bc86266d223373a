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
  std::int64_t first_row = 0; ///< first row of the source
  std::int64_t n_rows = 0;
  /// Size of heads whose two halves' rows alternate, so that rotary pairs adjoin; 0 when rows keep
  /// their order.
  std::int64_t paired_head = 0;
  bool unit_rows = false; ///< each row is brought to length 1

  bool is_vector() const { return source.shape.size() == 1; }
  std::int64_t row_values() const { return source.row_values(); }
  std::int64_t values() const { return n_rows * row_values(); }
  /// The source's row that is row `row` of the file.
  std::int64_t source_row(std::int64_t row) const;
};

/// The general.architecture of the recipe's file. Fails with unsupported for families, packings and
/// shapes for which llama.cpp has no architecture.
result<std::string> gguf_architecture(const recipe& r);

/// The tensors in the order of the file. The recipe must have an architecture.
std::vector<gguf_tensor> plan_gguf(const recipe& r);

} // namespace twill::synth
