// gguf_plan: lists the tensors of the GGUF file of a recipe (models/synth/recipe.hpp), as
// llama.cpp's converter would write them.
//
// The types are plain values, and the functions are pure. A tensor of the file consists of some
// rows of a planned_tensor (models/synth/plan.hpp), under another name and possibly in another
// order. write_gguf.cpp produces the bytes.
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
  std::int64_t first_row = 0; ///< first row in the source tensor
  std::int64_t n_rows = 0;
  /// Head size if the rows of a head's two halves must alternate in the file, so that the two rows
  /// of a rotary pair are adjacent; 0 when the rows keep their order.
  std::int64_t paired_head = 0;
  bool unit_rows = false; ///< scale each row to length 1

  bool is_vector() const { return source.shape.size() == 1; }
  std::int64_t row_values() const { return source.row_values(); }
  std::int64_t values() const { return n_rows * row_values(); }
  /// Returns which row of the source tensor becomes row `row` of the file's tensor.
  std::int64_t source_row(std::int64_t row) const;
};

/// Returns the value of general.architecture for the recipe's file. Fails with errc::unsupported
/// for model families and shapes for which llama.cpp has no architecture, and for weights packed as
/// in GPTQ or AWQ.
result<std::string> gguf_architecture(const recipe& r);

/// Returns the tensors in the order of the file. gguf_architecture() must have succeeded for the
/// recipe.
std::vector<gguf_tensor> plan_gguf(const recipe& r);

} // namespace twill::synth
