// plan: lists the tensors of a recipe, with the names, types and shapes that real folders of the
// family have.
//
// Plain values. `content` states what a tensor holds; models/synth/fill generates its bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/synth/recipe.hpp"

namespace twill::models::synth {

enum class element : std::uint8_t { f32, f16, bf16, i32 };

/// Bytes of one value.
std::int64_t bytes_of(element e);
/// Returns the name in safetensors files: "F32", "F16", "BF16", "I32".
const char* name_of(element e);

enum class content : std::uint8_t {
  normal,      ///< normal values around `mean`
  frequencies, ///< mean^(-i / n): a table of rotary frequencies, as some checkpoints store it
  codes,       ///< packed codes of a module: qweight
  zeros,       ///< packed zero points: qzeros
  scales,      ///< scales of a module
  group_index, ///< g_idx: the group of each input column
};

/// One quantised matrix, stored as several tensors.
struct packed_module {
  std::string name; ///< without ".qweight"
  packing kind = packing::gptq;
  std::int64_t rows = 0; ///< output features
  std::int64_t cols = 0; ///< input features
  std::int32_t bits = 4;
  std::int64_t group = 128; ///< columns per scale
  bool act_order = false;
  bool symmetric = true;
  double scale = 0;         ///< scales lie around this value
  std::string order_stream; ///< modules whose order_stream is equal have the same column order

  std::int64_t groups() const { return cols / group; }
};

struct planned_tensor {
  std::string name;
  element type = element::f16;
  content kind = content::normal;
  std::vector<std::int64_t> shape; ///< outermost first
  double mean = 0;
  double deviation = 0;
  std::shared_ptr<const packed_module> module; ///< null for dense contents

  std::int64_t rows() const { return shape.front(); }
  std::int64_t row_values() const;
  std::int64_t row_bytes() const { return row_values() * bytes_of(type); }
  std::int64_t bytes() const { return rows() * row_bytes(); }
};

/// Returns the tensors of a valid recipe, in the order in which files hold them.
std::vector<planned_tensor> plan_tensors(const recipe& r);

std::int64_t total_bytes(const std::vector<planned_tensor>& tensors);

} // namespace twill::models::synth
