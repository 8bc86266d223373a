// plan_builder: the words in which a family says what tensors its checkpoints hold.
//
// One thread. Values are scaled so that inputs of unit size give outputs of unit size, as far as
// a matrix is concerned; heads give logits of deviation 3.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "models/synth/plan.hpp"

namespace twill::models::synth {

/// Logits of this deviation are neither flat nor certain.
inline constexpr double logit_deviation = 3;

class plan_builder {
public:
  using size = std::int64_t;

  explicit plan_builder(const recipe& r);

  const recipe& made_from() const { return recipe_; }
  std::vector<planned_tensor> take() { return std::move(tensors_); }

  /// Normal values around `mean`.
  void add(const std::string& name, std::vector<size> shape, double mean, double deviation);
  /// A stored table of `n` rotary frequencies: base^(-i / n).
  void frequencies(const std::string& name, size n, double base);
  /// `module`.weight, (rows, cols), which no quantised checkpoint packs.
  void matrix(const std::string& module, size rows, size cols);
  /// A matrix that quantised checkpoints pack. Modules of one `order` share their input, and so
  /// the act-order of its columns.
  void packable(const std::string& module, size rows, size cols, const std::string& order);
  /// A packable matrix and its bias.
  void biased(const std::string& module, size rows, size cols, const std::string& order);
  void bias(const std::string& name, size n);
  /// The weight of an RMS norm over the hidden size.
  void norm(const std::string& name, double mean = 1);
  /// Weight and bias of a layer norm over the hidden size.
  void layer_norm(const std::string& module);
  /// An embedding, or a head (or an embedding that serves as one).
  void table(const std::string& name, size rows, size cols, bool is_head);

private:
  void pack(packed_module m);

  const recipe& recipe_;
  element dense_;
  std::vector<planned_tensor> tensors_;
};

} // namespace twill::models::synth
