#include "models/memory_estimate/memory_estimate.hpp"

#include <set>
#include <string>

#include "gpu/linear/packed_matrix.hpp"

namespace twill::models {
namespace {

std::set<std::string> mlp_matrices(const model_spec& spec) {
  const tensor_names& n = spec.names;
  std::set<std::string> names;
  for (const std::string* pattern : {&n.gate_up, &n.gate, &n.up, &n.down})
    for (std::int32_t layer = 0; layer < spec.n_layers && !pattern->empty(); ++layer)
      names.insert(layer_tensor(*pattern, layer));
  return names;
}

} // namespace

packed_weights estimate_packed_weights(const model_spec& spec, const checkpoint& weights) {
  packed_weights sizes;
  const std::set<std::string> mlps = mlp_matrices(spec);
  for (const tensor_info& t : weights.tensors()) {
    const tensor_names& n = spec.names;
    if (t.name == n.head && spec.tied_head) continue;
    const auto source = t.shape.size() == 2
                            ? weights.matrix(t.name)
                            : result<gpu::weight_source>(failure{errc::bad_tensor, ""});
    if (!source.ok()) {
      std::int64_t values = 1;
      for (const std::int64_t side : t.shape)
        values *= side;
      sizes.small += 4 * values;
      continue;
    }
    const std::int64_t bytes = gpu::packed_bytes(source.value());
    if (t.name == n.embedding || t.name == n.head)
      sizes.tables += bytes;
    else if (t.name == n.positions || t.name == n.project_in || t.name == n.project_out)
      sizes.small += bytes;
    else
      sizes.layers += bytes;
    if (mlps.contains(t.name)) sizes.mlps += bytes;
  }
  return sizes;
}

} // namespace twill::models
