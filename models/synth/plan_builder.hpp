// plan_builder: the functions with which a family lists the tensors that its checkpoints hold.
//
// An object is used by one thread. The synthetic values of a tensor are drawn with a scale: a
// matrix turns inputs with a standard deviation of 1 into outputs with about the same, and the
// head's logits have a standard deviation of 3.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "models/synth/plan.hpp"

namespace twill::models::synth {

/// With this standard deviation of the logits, the next token is neither arbitrary nor certain.
inline constexpr double logit_deviation = 3;

class plan_builder {
public:
  using size = std::int64_t;

  explicit plan_builder(const recipe& r);

  const recipe& made_from() const { return recipe_; }
  std::vector<planned_tensor> take() { return std::move(tensors_); }

  /// Adds a tensor of normal values around `mean`.
  void add(const std::string& name, std::vector<size> shape, double mean, double deviation);
  /// Adds a table of `n` rotary frequencies, as a checkpoint stores it: base^(-i / n).
  void frequencies(const std::string& name, size n, double base);
  /// Adds `module`.weight, (rows, cols), a matrix that quantised checkpoints leave dense.
  void matrix(const std::string& module, size rows, size cols);
  /// Adds the matrix of the linear layer `module`; GPTQ and AWQ checkpoints store it quantised.
  /// Layers with the same `order` have the same input, so GPTQ's act-order permutes their columns
  /// alike.
  void packable(const std::string& module, size rows, size cols, const std::string& order);
  /// Adds a packable matrix and its bias.
  void biased(const std::string& module, size rows, size cols, const std::string& order);
  void bias(const std::string& name, size n);
  /// Adds the weight of an RMS norm over the hidden size.
  void norm(const std::string& name, double mean = 1);
  /// Adds weight and bias of a layer norm over the hidden size.
  void layer_norm(const std::string& module);
  /// Adds an embedding or a head. `is_head` is also true for an embedding that serves as the head.
  void table(const std::string& name, size rows, size cols, bool is_head);

private:
  void pack(packed_module m);

  const recipe& recipe_;
  element dense_;
  std::vector<planned_tensor> tensors_;
};

} // namespace twill::models::synth
