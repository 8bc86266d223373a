#include "models/memory_estimate/memory_estimate.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "gpu/attention/attention.hpp"
#include "gpu/linear/linear.hpp"
#include "gpu/sampling/sample.hpp"
#include "models/decoder/decoder_weights.hpp"
#include "models/decoder/projection.hpp"
#include "models/decoder/tensor_roles.hpp"
#include "models/offload/streams/embedding_cache.hpp"
#include "models/offload/streams/weight_layout.hpp"

namespace twill::models {
namespace {

struct product {
  gpu::weight_source source;
  gpu::compute_type compute;
};

void append(std::vector<product>& to, const checkpoint& weights,
            const std::vector<matrix_role>& roles, gpu::compute_type wanted) {
  for (gpu::weight_source& s : packed_sources(weights, roles, wanted)) {
    const gpu::compute_type compute = compute_for(s.kind, wanted);
    to.push_back({std::move(s), compute});
  }
}

std::vector<product> attention_of(const model_spec& spec, const checkpoint& weights,
                                  gpu::compute_type compute, std::int32_t layer) {
  std::vector<product> all;
  append(all, weights, qkv_roles(spec, layer), compute_for_qkv(compute));
  append(all, weights, {o_role(spec, layer)}, compute);
  return all;
}

std::vector<product> mlp_of(const model_spec& spec, const checkpoint& weights,
                            gpu::compute_type compute, std::int32_t layer) {
  std::vector<product> all;
  append(all, weights, up_roles(spec, layer), compute);
  append(all, weights, {down_role(spec, layer)}, compute);
  return all;
}

/// Returns the embedding or the head. Its values are packed exactly, without rounding to the
/// compute type, because single rows of the matrix are read too.
std::vector<product> table_of(const checkpoint& weights, const std::string& name,
                              gpu::compute_type compute) {
  std::vector<product> all;
  append(all, weights, {matrix_role{name}}, compute);
  for (product& p : all)
    p.source.only_compute.reset();
  return all;
}

std::int64_t row_panels_of(const gpu::weight_source& s) {
  return (s.rows + 15) / 16;
}

std::vector<std::int64_t> image_sizes(const std::vector<product>& products) {
  std::vector<std::int64_t> sizes;
  for (const product& p : products)
    sizes.push_back(gpu::packed_layout(p.source).bytes(row_panels_of(p.source)));
  return sizes;
}

} // namespace

std::int64_t estimate_scratch_bytes(const gpu::device& dev, const model_spec& spec,
                                    const checkpoint& weights, const decoder_options& o) {
  if (!validate(spec).ok()) return 0;
  std::int64_t most = gpu::attention_scratch_bytes(
      dev, spec.n_heads, spec.n_kv_heads, spec.head_dim, o.max_step_tokens,
      std::int64_t{decoder::block_table_width(spec, o)} * o.block_tokens);
  // This counts the scratch memory of sampling without log-probabilities. The executor also returns
  // log-probabilities, so it takes the larger of this estimate and what that sampling needs
  // (actors/executor/model_on_device).
  most =
      std::max(most, gpu::sampling_scratch_bytes(dev, o.max_logit_rows, spec.vocab_size, false, 0));
  const auto add = [&](const std::vector<product>& products, std::int64_t rows) {
    for (const product& p : products)
      most = std::max(most, gpu::linear_scratch_bytes(dev, p.source, p.compute, rows));
  };
  const std::int64_t rows = std::max(o.max_step_tokens, o.max_logit_rows);
  for (std::int32_t layer = 0; layer < spec.n_layers; ++layer) {
    add(attention_of(spec, weights, o.compute, layer), rows);
    add(mlp_of(spec, weights, o.compute, layer), rows);
  }
  for (const std::string& name : {spec.names.project_in, spec.names.project_out}) {
    std::vector<product> ends;
    append(ends, weights, {matrix_role{name}}, o.compute);
    add(ends, rows);
  }
  add(table_of(weights, spec.tied_head ? spec.names.embedding : spec.names.head, o.compute),
      o.max_logit_rows);
  return most;
}

streamed_weights estimate_streamed_weights(const model_spec& spec, const checkpoint& weights,
                                           const decoder_options& o) {
  if (!validate(spec).ok()) return {};
  offload::weight_layout layout(o.offload);
  for (std::int32_t layer = 0; layer < spec.n_layers; ++layer) {
    std::vector<std::int64_t> sizes = image_sizes(attention_of(spec, weights, o.compute, layer));
    const std::vector<std::int64_t> mlp = image_sizes(mlp_of(spec, weights, o.compute, layer));
    if (o.offload.sep_layer) {
      layout.add_group(sizes);
      layout.add_group(mlp);
    } else {
      sizes.insert(sizes.end(), mlp.begin(), mlp.end());
      layout.add_group(sizes);
    }
  }
  streamed_weights memory;
  for (const product& p : table_of(weights, spec.names.embedding, o.compute)) {
    const gpu::image_layout image = gpu::packed_layout(p.source);
    layout.add_table(image, row_panels_of(p.source), spec.tied_head);
    memory.embedding_rows =
        offload::embedding_cache::device_bytes(image, row_panels_of(p.source), o.max_step_tokens);
  }
  if (!spec.tied_head)
    for (const product& p : table_of(weights, spec.names.head, o.compute))
      layout.add_table(gpu::packed_layout(p.source), row_panels_of(p.source), true);
  if (spec.normalised_head)
    for (const product& p :
         table_of(weights, spec.tied_head ? spec.names.embedding : spec.names.head, o.compute))
      memory.head_rows =
          offload::embedding_cache::device_bytes(gpu::packed_layout(p.source),
                                                 row_panels_of(p.source), head_rows_at_once) +
          4 * head_rows_at_once * p.source.cols;
  memory.resident = layout.placed().device;
  memory.ring = layout.ring_bytes();
  return memory;
}

} // namespace twill::models
