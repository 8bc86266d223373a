#include "models/decoder/check_weights.hpp"

#include <functional>
#include <set>
#include <string>

#include "models/decoder/tensor_roles.hpp"

namespace twill::models {

std::vector<failure> check_weights(const model_spec& spec, const checkpoint& weights) {
  const std::vector<tensor_role> roles = tensor_roles(spec);
  std::set<std::string, std::less<>> known;
  for (const tensor_role& role : roles)
    known.insert(role.name);
  std::vector<failure> found;
  for (const tensor_info& t : weights.tensors())
    if (known.find(t.name) == known.end())
      found.push_back({errc::unsupported, "tensor `" + t.name + "` has no role in a " +
                                              spec.family + " model of " +
                                              std::to_string(spec.n_layers) + " layers"});
  for (const tensor_role& role : roles)
    if (auto good = check_role(weights, role); !good.ok()) found.push_back(good.error());
  return found;
}

} // namespace twill::models
