#include "models/decoder/tensor_roles.hpp"

#include <utility>

#include "models/checkpoint/element.hpp"
#include "models/checkpoint/tensor_table.hpp"

namespace twill::models {
namespace {

/// Collects the roles of a spec.
class role_list {
public:
  explicit role_list(const model_spec& spec) : spec_(spec) {}

  void add(const std::string& name, std::vector<std::int64_t> shape, bool required = true) {
    if (!name.empty()) roles_.push_back({name, std::move(shape), required});
  }
  void add_norm(const std::string& name, std::int64_t size) {
    add(name, {size});
    if (spec_.norm == norm_kind::layer && !name.empty()) add(bias_of(name), {size});
  }
  void add_matrix(const matrix_role& role) {
    add(role.name, {role.rows, role.cols});
    if (role.bias != bias_rule::none)
      add(bias_of(role.name), {role.rows}, role.bias == bias_rule::required);
  }
  void add_layer(std::int32_t layer) {
    const tensor_names& n = spec_.names;
    for (const std::string* norm : {&n.attention_norm, &n.mlp_norm})
      add_norm(layer_tensor(*norm, layer), spec_.hidden_size);
    for (const std::string* norm : {&n.q_norm, &n.k_norm})
      add(layer_tensor(*norm, layer), {spec_.head_dim});
    for (const matrix_role& role : qkv_roles(spec_, layer))
      add_matrix(role);
    for (const matrix_role& role : up_roles(spec_, layer))
      add_matrix(role);
    add_matrix(o_role(spec_, layer));
    add_matrix(down_role(spec_, layer));
  }
  std::vector<tensor_role> take() { return std::move(roles_); }

private:
  const model_spec& spec_;
  std::vector<tensor_role> roles_;
};

} // namespace

std::vector<matrix_role> qkv_roles(const model_spec& spec, std::int32_t layer) {
  const tensor_names& n = spec.names;
  const std::int64_t hidden = spec.hidden_size, q = spec.q_size(), kv = spec.kv_size();
  if (!n.qkv.empty()) return {{layer_tensor(n.qkv, layer), q + 2 * kv, hidden, spec.qkv_bias}};
  return {{layer_tensor(n.q, layer), q, hidden, spec.qkv_bias},
          {layer_tensor(n.k, layer), kv, hidden, spec.qkv_bias},
          {layer_tensor(n.v, layer), kv, hidden, spec.qkv_bias}};
}

std::vector<matrix_role> up_roles(const model_spec& spec, std::int32_t layer) {
  const tensor_names& n = spec.names;
  const std::int64_t hidden = spec.hidden_size, mlp = spec.mlp_size;
  if (!n.gate_up.empty()) return {{layer_tensor(n.gate_up, layer), 2 * mlp, hidden, spec.mlp_bias}};
  const matrix_role up = {layer_tensor(n.up, layer), mlp, hidden, spec.mlp_bias};
  if (!spec.gated_mlp) return {up};
  return {{layer_tensor(n.gate, layer), mlp, hidden, spec.mlp_bias}, up};
}

matrix_role o_role(const model_spec& spec, std::int32_t layer) {
  return {layer_tensor(spec.names.o, layer), spec.hidden_size, spec.q_size(), spec.o_bias};
}

matrix_role down_role(const model_spec& spec, std::int32_t layer) {
  return {layer_tensor(spec.names.down, layer), spec.hidden_size, spec.mlp_size, spec.mlp_bias};
}

std::vector<tensor_role> tensor_roles(const model_spec& spec) {
  const tensor_names& n = spec.names;
  const std::int64_t vocab = spec.vocab_size, hidden = spec.hidden_size,
                     width = spec.embedding_size;
  role_list roles(spec);
  roles.add(n.embedding, {vocab, width});
  roles.add(n.positions, {std::int64_t{spec.most_positions} + spec.position_offset, hidden});
  roles.add(n.project_in, {hidden, width});
  roles.add(n.project_out, {width, hidden});
  if (spec.tied_head)
    roles.add(n.head, {}, false);
  else
    roles.add(n.head, {vocab, width});
  roles.add(n.rope_factors, {}, false);
  roles.add_norm(n.final_norm, hidden);
  for (std::int32_t i = 0; i < spec.n_layers; ++i)
    roles.add_layer(i);
  return roles.take();
}

result<nothing> check_shape(const checkpoint& weights, const std::string& name,
                            const std::vector<std::int64_t>& shape) {
  const tensor_info* info = weights.find(name);
  if (info == nullptr)
    return failure{errc::missing_tensor, "tensor `" + name + "` is not in the file"};
  if (info->shape != shape)
    return failure{errc::bad_tensor, "tensor `" + name + "` must have shape " + shape_text(shape) +
                                         ", got " + shape_text(info->shape)};
  return nothing{};
}

result<nothing> check_role(const checkpoint& weights, const tensor_role& role) {
  if (role.shape.empty()) return nothing{};
  const tensor_info* info = weights.find(role.name);
  if (info == nullptr && !role.required) return nothing{};
  if (auto fits = check_shape(weights, role.name, role.shape); !fits.ok()) return fits;
  // All other names are quantised kinds, which their reader has checked.
  const element_info* element = find_element(info->type);
  return element == nullptr || element->is_weight ? nothing{} : result<nothing>(not_numbers(*info));
}

} // namespace twill::models
