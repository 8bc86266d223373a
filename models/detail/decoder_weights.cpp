#include "models/detail/decoder_weights.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <utility>

#include "models/check_weights.hpp"
#include "models/detail/gpu_error.hpp"
#include "models/detail/tensor_roles.hpp"

namespace twill::models {
namespace {

struct packed_table {
  gpu::packed_matrix matrix;
  gpu::weight_kind kind = gpu::weight_kind::f32;
};

result<packed_table> load_table(gpu::device& dev, const checkpoint& weights,
                                const matrix_role& role) {
  auto source = checked_matrix(weights, role);
  if (!source.ok()) return source.error();
  if (source.value().column_order != nullptr)
    return failure{errc::unsupported,
                   "tensor `" + role.name + "` must not be quantised in activation order"};
  auto packed = gpu::pack(dev, source.value(), role.name.c_str());
  if (!packed.ok()) return from_gpu(packed.error());
  weights.release(role.name);
  return packed_table{std::move(packed).value(), source.value().kind};
}

/// Puts the value of `from` into `to`, or returns the failure.
template <class T>
result<nothing> assign(result<T> from, T& to) {
  if (!from.ok()) return from.error();
  to = std::move(from).value();
  return nothing{};
}

/// Runs steps until one fails.
class sequence {
public:
  template <class Step>
  sequence& then(Step step) {
    if (outcome_.ok()) outcome_ = step();
    return *this;
  }
  const result<nothing>& outcome() const { return outcome_; }

private:
  result<nothing> outcome_ = nothing{};
};

result<nothing> load_layer(gpu::device& dev, const model_spec& spec, const checkpoint& weights,
                           gpu::compute_type compute, std::int32_t index, layer_weights& out) {
  const tensor_names& n = spec.names;
  // Softmax amplifies what rounding does to queries and keys: on SmolLM2 finer steps here take a
  // third off the error per token (int8 perplexity from 0.5 % off to 0.1 %).
  const gpu::compute_type qkv_compute =
      compute == gpu::compute_type::int8 ? gpu::compute_type::int8x2 : compute;
  const auto norm = [&](const std::string& name, norm_weights& to) {
    return assign(
        norm_weights::load(dev, weights, layer_tensor(name, index), spec.hidden_size, spec.norm),
        to);
  };
  const auto head_norm = [&](const std::string& name, gpu::buffer& to) -> result<nothing> {
    if (name.empty()) return nothing{};
    return assign(upload_vector(dev, weights, layer_tensor(name, index), spec.head_dim), to);
  };
  const auto project = [&](const std::vector<matrix_role>& roles, gpu::compute_type type,
                           projection& to) {
    return assign(projection::load(dev, weights, roles, type), to);
  };
  return sequence()
      .then([&] { return norm(n.attention_norm, out.attention_norm); })
      .then([&] { return project(qkv_roles(spec, index), qkv_compute, out.qkv); })
      .then([&] { return head_norm(n.q_norm, out.q_norm); })
      .then([&] { return head_norm(n.k_norm, out.k_norm); })
      .then([&] { return project({o_role(spec, index)}, compute, out.o); })
      .then([&] { return norm(n.mlp_norm, out.mlp_norm); })
      .then([&] { return project(up_roles(spec, index), compute, out.up); })
      .then([&] { return project({down_role(spec, index)}, compute, out.down); })
      .outcome();
}

/// 1 / length of each row of the head: logits are scaled by it, which is what a head with
/// normalised rows gives, without a copy of the matrix.
result<gpu::buffer> head_factors(gpu::device& dev, const gpu::packed_matrix& head) {
  constexpr std::int64_t chunk = 64;
  const std::int64_t rows = head.rows(), cols = head.cols();
  auto ids = dev.allocate(chunk * sizeof(std::int32_t), "head rows");
  if (!ids.ok()) return from_gpu(ids.error());
  auto widened = dev.allocate(static_cast<std::size_t>(chunk * cols) * sizeof(float), "head rows");
  if (!widened.ok()) return from_gpu(widened.error());
  std::vector<std::int32_t> wanted(chunk);
  std::vector<float> values(static_cast<std::size_t>(chunk * cols)), factors;
  for (std::int64_t first = 0; first < rows; first += chunk) {
    const std::int64_t n = std::min(chunk, rows - first);
    std::iota(wanted.begin(), wanted.end(), static_cast<std::int32_t>(first));
    dev.upload(ids.value().data(), wanted.data(),
               static_cast<std::size_t>(n) * sizeof(std::int32_t));
    gpu::embedding(dev, head, static_cast<const std::int32_t*>(ids.value().data()),
                   gpu::view_2d(widened.value().data(), gpu::dtype::f32, n, cols));
    dev.download(values.data(), widened.value().data(),
                 static_cast<std::size_t>(n * cols) * sizeof(float));
    for (std::int64_t r = 0; r < n; ++r) {
      const float* row = values.data() + r * cols;
      const double squares = std::transform_reduce(row, row + cols, 0.0, std::plus<>(),
                                                   [](float x) { return double{x} * double{x}; });
      factors.push_back(static_cast<float>(1 / std::max(std::sqrt(squares), 1e-12)));
    }
  }
  return upload_values(dev, factors, "head factors");
}

result<nothing> load_head(gpu::device& dev, const model_spec& spec, const checkpoint& weights,
                          gpu::compute_type compute, decoder_weights& out) {
  if (!spec.tied_head) {
    auto head = load_table(dev, weights, {spec.names.head, spec.vocab_size, spec.embedding_size});
    if (!head.ok()) return head.error();
    out.head = std::move(head.value().matrix);
    out.head_compute = compute_for(head.value().kind, compute);
  }
  if (!spec.normalised_head) return nothing{};
  return assign(head_factors(dev, out.head_matrix()), out.head_factors);
}

result<nothing> load_positions(gpu::device& dev, const model_spec& spec, const checkpoint& weights,
                               decoder_weights& out) {
  if (spec.names.positions.empty()) return nothing{};
  const std::int64_t rows = std::int64_t{spec.most_positions} + spec.position_offset;
  auto table = load_table(dev, weights, {spec.names.positions, rows, spec.hidden_size});
  if (!table.ok()) return table.error();
  out.positions = std::move(table.value().matrix);
  return nothing{};
}

result<nothing> load_projections(gpu::device& dev, const model_spec& spec,
                                 const checkpoint& weights, gpu::compute_type compute,
                                 decoder_weights& out) {
  if (spec.names.project_in.empty()) return nothing{};
  const matrix_role in = {spec.names.project_in, spec.hidden_size, spec.embedding_size};
  const matrix_role back = {spec.names.project_out, spec.embedding_size, spec.hidden_size};
  return sequence()
      .then([&] { return assign(projection::load(dev, weights, {in}, compute), out.project_in); })
      .then(
          [&] { return assign(projection::load(dev, weights, {back}, compute), out.project_out); })
      .outcome();
}

/// What comes before the first layer and after the last.
result<nothing> load_ends(gpu::device& dev, const model_spec& spec, const checkpoint& weights,
                          gpu::compute_type compute, decoder_weights& out) {
  auto embedding =
      load_table(dev, weights, {spec.names.embedding, spec.vocab_size, spec.embedding_size});
  if (!embedding.ok()) return embedding.error();
  out.embedding = std::move(embedding.value().matrix);
  out.head_compute = compute_for(embedding.value().kind, compute);
  return sequence()
      .then([&] { return load_head(dev, spec, weights, compute, out); })
      .then([&] { return load_positions(dev, spec, weights, out); })
      .then([&] { return load_projections(dev, spec, weights, compute, out); })
      .then([&] {
        return assign(upload_values(dev, spec.rope.inv_freq, "rotary frequencies"), out.inv_freq);
      })
      .then([&] {
        return assign(upload_values(dev, spec.alibi_slopes, "ALiBi slopes"), out.alibi_slopes);
      })
      .then([&]() -> result<nothing> {
        if (spec.names.final_norm.empty()) return nothing{};
        return assign(
            norm_weights::load(dev, weights, spec.names.final_norm, spec.hidden_size, spec.norm),
            out.final_norm);
      })
      .outcome();
}

} // namespace

std::int64_t decoder_weights::bytes() const {
  std::int64_t total = embedding.bytes() + positions.bytes() + project_in.weight_bytes() +
                       project_out.weight_bytes() + (head ? head.bytes() : 0);
  for (const layer_weights& l : layers)
    total +=
        l.qkv.weight_bytes() + l.o.weight_bytes() + l.up.weight_bytes() + l.down.weight_bytes();
  return total;
}

result<decoder_weights> load_weights(gpu::device& dev, const model_spec& spec,
                                     const checkpoint& weights, gpu::compute_type compute,
                                     const std::function<void(double)>& progress) {
  // Before the packing, which takes long: a checkpoint that does not fit is refused at once.
  if (const auto found = check_weights(spec, weights); !found.empty()) return found.front();
  decoder_weights loaded;
  // One share per layer and one for embedding and head: even enough for a progress bar.
  const double shares = spec.n_layers + 1.0;
  if (auto ends = load_ends(dev, spec, weights, compute, loaded); !ends.ok()) return ends.error();
  if (progress) progress(1 / shares);
  for (std::int32_t i = 0; i < spec.n_layers; ++i) {
    layer_weights layer;
    if (auto done = load_layer(dev, spec, weights, compute, i, layer); !done.ok())
      return done.error();
    loaded.layers.push_back(std::move(layer));
    if (progress) progress((i + 2) / shares);
  }
  return loaded;
}

} // namespace twill::models
