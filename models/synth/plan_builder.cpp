#include "models/synth/plan_builder.hpp"

#include <cmath>

namespace twill::models::synth {
namespace {

// Codes are 1..15 (with 8 bits 1..255), and the middle code is twice as likely as any other. The
// probabilities are symmetric around the middle code, which is therefore the mean. The constants
// are the standard deviations of the codes.
constexpr double code_deviation_4 = 4.1833;
constexpr double code_deviation_8 = 73.611;

element element_of(storage_type type) {
  switch (type) {
  case storage_type::f32:
    return element::f32;
  case storage_type::f16:
    return element::f16;
  case storage_type::bf16:
    return element::bf16;
  }
  return element::f32;
}

} // namespace

plan_builder::plan_builder(const recipe& r) : recipe_(r), dense_(element_of(r.dtype)) {}

void plan_builder::add(const std::string& name, std::vector<size> shape, double mean,
                       double deviation) {
  planned_tensor t;
  t.name = name;
  t.type = dense_;
  t.shape = std::move(shape);
  t.mean = mean;
  t.deviation = deviation;
  tensors_.push_back(std::move(t));
}

void plan_builder::frequencies(const std::string& name, size n, double base) {
  add(name, {n}, base, 0);
  tensors_.back().kind = content::frequencies;
}

void plan_builder::matrix(const std::string& module, size rows, size cols) {
  add(module + ".weight", {rows, cols}, 0, 1 / std::sqrt(static_cast<double>(cols)));
}

void plan_builder::packable(const std::string& module, size rows, size cols,
                            const std::string& order) {
  if (recipe_.packed == packing::none) return matrix(module, rows, cols);
  packed_module m;
  m.name = module;
  m.kind = recipe_.packed;
  m.rows = rows;
  m.cols = cols;
  m.bits = recipe_.bits;
  m.group = recipe_.group < 0 ? cols : recipe_.group;
  m.act_order = recipe_.packed == packing::gptq && recipe_.act_order;
  m.symmetric = recipe_.packed == packing::gptq && recipe_.symmetric;
  m.scale = 1 / std::sqrt(static_cast<double>(cols)) /
            (m.bits == 4 ? code_deviation_4 : code_deviation_8);
  m.order_stream = order;
  pack(std::move(m));
}

void plan_builder::pack(packed_module m) {
  const size per_word = 32 / m.bits;
  const auto module = std::make_shared<const packed_module>(std::move(m));
  const auto part = [&](const char* suffix, element type, content kind, std::vector<size> shape) {
    planned_tensor t;
    t.name = module->name + suffix;
    t.type = type;
    t.kind = kind;
    t.shape = std::move(shape);
    t.module = module;
    tensors_.push_back(std::move(t));
  };
  if (module->kind == packing::gptq) {
    part(".g_idx", element::i32, content::group_index, {module->cols});
    part(".qweight", element::i32, content::codes, {module->cols / per_word, module->rows});
  } else {
    part(".qweight", element::i32, content::codes, {module->cols, module->rows / per_word});
  }
  part(".qzeros", element::i32, content::zeros, {module->groups(), module->rows / per_word});
  part(".scales", element::f16, content::scales, {module->groups(), module->rows});
}

void plan_builder::biased(const std::string& module, size rows, size cols,
                          const std::string& order) {
  packable(module, rows, cols, order);
  bias(module + ".bias", rows);
}

void plan_builder::bias(const std::string& name, size n) {
  add(name, {n}, 0, 0.02);
}

void plan_builder::norm(const std::string& name, double mean) {
  add(name, {recipe_.hidden_size}, mean, 0.1);
}

void plan_builder::layer_norm(const std::string& module) {
  norm(module + ".weight");
  bias(module + ".bias", recipe_.hidden_size);
}

void plan_builder::table(const std::string& name, size rows, size cols, bool is_head) {
  add(name, {rows, cols}, 0,
      is_head ? logit_deviation / std::sqrt(static_cast<double>(cols)) : 0.5);
}

} // namespace twill::models::synth
