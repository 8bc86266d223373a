#include "models/detail/tensor_roles.hpp"

#include <set>
#include <string>

namespace twill::models {
namespace {

using name_set = std::set<std::string, std::less<>>;

void add(name_set& known, const std::string& name) {
  if (!name.empty()) known.insert(name);
}

void add_norm(name_set& known, const std::string& name, norm_kind kind) {
  add(known, name);
  if (kind == norm_kind::layer && !name.empty()) known.insert(bias_of(name));
}

void add_matrix(name_set& known, const matrix_role& role) {
  add(known, role.name);
  if (role.bias != bias_rule::none) known.insert(bias_of(role.name));
}

void add_layer(name_set& known, const model_spec& spec, std::int32_t layer) {
  const tensor_names& n = spec.names;
  for (const std::string* norm : {&n.attention_norm, &n.mlp_norm})
    add_norm(known, layer_tensor(*norm, layer), spec.norm);
  for (const std::string* norm : {&n.q_norm, &n.k_norm})
    add(known, layer_tensor(*norm, layer));
  for (const std::string& name : n.ignored)
    add(known, layer_tensor(name, layer));
  for (const matrix_role& role : qkv_roles(spec, layer))
    add_matrix(known, role);
  for (const matrix_role& role : up_roles(spec, layer))
    add_matrix(known, role);
  add_matrix(known, o_role(spec, layer));
  add_matrix(known, down_role(spec, layer));
}

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

result<nothing> check_all_known(const model_spec& spec, const checkpoint& weights) {
  const tensor_names& n = spec.names;
  name_set known;
  for (const std::string* name :
       {&n.embedding, &n.positions, &n.project_in, &n.project_out, &n.head, &n.rope_factors})
    add(known, *name);
  add_norm(known, n.final_norm, spec.norm);
  for (std::int32_t i = 0; i < spec.n_layers; ++i)
    add_layer(known, spec, i);
  for (const tensor_info& t : weights.tensors())
    if (known.find(t.name) == known.end())
      return failure{errc::unsupported, "tensor `" + t.name + "` has no role in a " + spec.family +
                                            " model of " + std::to_string(spec.n_layers) +
                                            " layers"};
  return nothing{};
}

} // namespace twill::models
