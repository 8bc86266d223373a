#include "models/synth/plan.hpp"

#include "models/families/family.hpp"
#include "models/synth/family_recipe.hpp"
#include "models/synth/plan_builder.hpp"

namespace twill::models::synth {

std::int64_t bytes_of(element e) {
  return e == element::f16 || e == element::bf16 ? 2 : 4;
}

const char* name_of(element e) {
  switch (e) {
  case element::f32:
    return "F32";
  case element::f16:
    return "F16";
  case element::bf16:
    return "BF16";
  case element::i32:
    return "I32";
  }
  return "";
}

std::int64_t planned_tensor::row_values() const {
  std::int64_t n = 1;
  for (std::size_t i = 1; i < shape.size(); ++i)
    n *= shape[i];
  return n;
}

std::vector<planned_tensor> plan_tensors(const recipe& r) {
  plan_builder plan(r);
  r.family->recipe->plan(plan);
  return plan.take();
}

std::int64_t total_bytes(const std::vector<planned_tensor>& tensors) {
  std::int64_t sum = 0;
  for (const planned_tensor& t : tensors)
    sum += t.bytes();
  return sum;
}

} // namespace twill::models::synth
