#include "models/decoder/decoder_weights.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <utility>

#include "gpu/rows/embedding.hpp"
#include "models/decoder/check_weights.hpp"
#include "models/decoder/gpu_error.hpp"
#include "models/decoder/tensor_roles.hpp"

namespace twill::models {
namespace {

struct packed_table {
  gpu::packed_matrix matrix;
  gpu::weight_kind kind = gpu::weight_kind::f32;
};

result<packed_table> load_table(gpu::device& dev, const checkpoint& weights,
                                const matrix_role& role, packing where) {
  auto source = checked_matrix(weights, role);
  if (!source.ok()) return source.error();
  if (source.value().column_order != nullptr)
    return failure{errc::unsupported,
                   "tensor `" + role.name + "` must not be quantised in activation order"};
  auto packed = pack_at(where, dev, source.value(), role.name.c_str());
  if (!packed.ok()) return from_gpu(packed.error());
  weights.release(role.name);
  return packed_table{std::move(packed).value(), source.value().kind};
}

/// Moves the value of `from` into `to`, or returns the failure.
template <class T>
result<nothing> assign(result<T> from, T& to) {
  if (!from.ok()) return from.error();
  to = std::move(from).value();
  return nothing{};
}

/// Runs functions in order until one fails.
class sequence {
public:
  template <class Load>
  sequence& then(Load load) {
    if (outcome_.ok()) outcome_ = load();
    return *this;
  }
  const result<nothing>& outcome() const { return outcome_; }

private:
  result<nothing> outcome_ = nothing{};
};

result<nothing> load_layer(gpu::device& dev, const model_spec& spec, const checkpoint& weights,
                           gpu::compute_type compute, packing where, std::int32_t index,
                           layer_weights& out) {
  const tensor_names& n = spec.names;
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
                           projection& to, std::int64_t residual_from = 0) {
    return assign(projection::load(dev, weights, roles, type, where, residual_from), to);
  };
  return sequence()
      .then([&] { return norm(n.attention_norm, out.attention_norm); })
      .then([&] {
        return project(qkv_roles(spec, index), compute_for_qkv(compute), out.qkv, spec.q_size());
      })
      .then([&] { return head_norm(n.q_norm, out.q_norm); })
      .then([&] { return head_norm(n.k_norm, out.k_norm); })
      .then([&] { return project({o_role(spec, index)}, compute, out.o); })
      .then([&] { return norm(n.mlp_norm, out.mlp_norm); })
      .then([&] { return project(up_roles(spec, index), compute, out.up); })
      .then([&] { return project({down_role(spec, index)}, compute, out.down); })
      .outcome();
}

/// Computes 1 / length of each row of the head. Multiplying logits by these factors gives the
/// logits of a head with normalised rows, without a normalised copy of the matrix.
///
/// `read_rows(ids, out)` reads rows of the head as f32.
template <class ReadRows>
result<gpu::buffer> head_factors(gpu::device& dev, std::int64_t rows, std::int64_t cols,
                                 const ReadRows& read_rows) {
  constexpr std::int64_t chunk = head_rows_at_once;
  auto widened = dev.allocate(static_cast<std::size_t>(chunk * cols) * sizeof(float), "head rows");
  if (!widened.ok()) return from_gpu(widened.error());
  std::vector<std::int32_t> wanted(chunk);
  std::vector<float> values(static_cast<std::size_t>(chunk * cols)), factors;
  for (std::int64_t first = 0; first < rows; first += chunk) {
    const std::int64_t n = std::min(chunk, rows - first);
    wanted.resize(static_cast<std::size_t>(n));
    std::iota(wanted.begin(), wanted.end(), static_cast<std::int32_t>(first));
    auto read = read_rows(wanted, gpu::view_2d(widened.value().data(), gpu::dtype::f32, n, cols));
    if (!read.ok()) return read.error();
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

result<gpu::buffer> resident_head_factors(gpu::device& dev, const gpu::packed_matrix& head) {
  auto memory = dev.allocate(head_rows_at_once * sizeof(std::int32_t), "head rows");
  if (!memory.ok()) return from_gpu(memory.error());
  auto* ids = static_cast<std::int32_t*>(memory.value().data());
  return head_factors(
      dev, head.rows(), head.cols(),
      [&](const std::vector<std::int32_t>& rows, gpu::tensor_ref out) -> result<nothing> {
        dev.upload(ids, rows.data(), rows.size() * sizeof(std::int32_t));
        gpu::embedding(dev, head, ids, out);
        return nothing{};
      });
}

result<nothing> load_tables(gpu::device& dev, const model_spec& spec, const checkpoint& weights,
                            gpu::compute_type compute, packing where, decoder_weights& out) {
  auto embedding =
      load_table(dev, weights, {spec.names.embedding, spec.vocab_size, spec.embedding_size}, where);
  if (!embedding.ok()) return embedding.error();
  out.embedding = std::move(embedding.value().matrix);
  out.head_compute = compute_for(embedding.value().kind, compute);
  if (spec.tied_head) return nothing{};
  auto head =
      load_table(dev, weights, {spec.names.head, spec.vocab_size, spec.embedding_size}, where);
  if (!head.ok()) return head.error();
  out.head = std::move(head.value().matrix);
  out.head_compute = compute_for(head.value().kind, compute);
  return nothing{};
}

result<nothing> load_positions(gpu::device& dev, const model_spec& spec, const checkpoint& weights,
                               decoder_weights& out) {
  if (spec.names.positions.empty()) return nothing{};
  const std::int64_t rows = std::int64_t{spec.most_positions} + spec.position_offset;
  auto table =
      load_table(dev, weights, {spec.names.positions, rows, spec.hidden_size}, packing::on_device);
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

/// Loads the weights used before the first layer and after the last layer, except embedding and
/// head.
result<nothing> load_ends(gpu::device& dev, const model_spec& spec, const checkpoint& weights,
                          gpu::compute_type compute, decoder_weights& out) {
  return sequence()
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

/// Moves embedding and head, which were packed on the host, to their tiers.
result<nothing> settle_tables(gpu::device& dev, const model_spec& spec, std::int64_t most_rows,
                              decoder_weights& out) {
  offload::weight_stream& stream = *out.stream;
  std::unique_ptr<offload::embedding_cache> head_rows;
  return sequence()
      .then([&] { return stream.add_table(out.embedding, spec.tied_head, out.embedding_parts); })
      .then([&] {
        return assign(stream.rows_of(out.embedding, out.embedding_parts, most_rows),
                      out.embedding_rows);
      })
      .then([&]() -> result<nothing> {
        if (spec.tied_head) return nothing{};
        return stream.add_table(out.head, true, out.head_parts);
      })
      .then([&]() -> result<nothing> {
        if (!spec.normalised_head) return nothing{};
        const gpu::packed_matrix& head = out.head_matrix();
        if (auto assigned =
                assign(stream.rows_of(head, out.parts_of_head(), head_rows_at_once), head_rows);
            !assigned.ok())
          return assigned;
        return assign(head_factors(dev, head.rows(), head.cols(),
                                   [&](const std::vector<std::int32_t>& rows, gpu::tensor_ref to) {
                                     return head_rows->rows(dev, rows, to);
                                   }),
                      out.head_factors);
      })
      .then([&]() -> result<nothing> {
        head_rows.reset();
        out.embedding = {};
        out.head = {};
        return stream.start();
      })
      .outcome();
}

std::vector<gpu::packed_matrix*> matrices_of(const std::vector<projection*>& projections) {
  std::vector<gpu::packed_matrix*> all;
  for (projection* p : projections)
    for (gpu::packed_matrix* m : p->matrices())
      all.push_back(m);
  return all;
}

/// Moves the matrices of a layer, which were packed on the host, to their tiers.
result<nothing> settle_layer(bool halves, offload::weight_stream& stream, layer_weights& layer) {
  if (!halves)
    return assign(stream.add_group(matrices_of({&layer.qkv, &layer.o, &layer.up, &layer.down})),
                  layer.group);
  return sequence()
      .then([&] {
        return assign(stream.add_group(matrices_of({&layer.qkv, &layer.o})), layer.group);
      })
      .then([&] {
        return assign(stream.add_group(matrices_of({&layer.up, &layer.down})), layer.mlp_group);
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
  return stream ? total + stream->placed().device + stream->ring_bytes() : total;
}

result<decoder_weights> load_weights(gpu::device& dev, const model_spec& spec,
                                     const checkpoint& weights, gpu::compute_type compute,
                                     const offload::offload_options* offload,
                                     std::int64_t most_rows,
                                     const std::function<void(double)>& progress) {
  // Packing takes long, so a checkpoint that does not fit its spec is refused before.
  if (const auto found = check_weights(spec, weights); !found.empty()) return found.front();
  decoder_weights loaded;
  const packing where = offload == nullptr ? packing::on_device : packing::on_host;
  if (offload != nullptr)
    if (auto opened = assign(offload::weight_stream::open(dev, *offload), loaded.stream);
        !opened.ok())
      return opened.error();
  // Progress counts one share per layer and one for embedding and head.
  double done = 0;
  const auto tell = [&] {
    done += 1;
    if (progress) progress(done / (spec.n_layers + 1.0));
  };
  // Without streaming, the tables (embedding and head) are loaded first, so that a lack of memory
  // shows early. With streaming they are loaded last, because they are cut into parts that fit the
  // transfer buffers, whose size follows from the layers.
  const auto tables = [&] { return load_tables(dev, spec, weights, compute, where, loaded); };
  auto ends =
      sequence()
          .then([&] { return load_ends(dev, spec, weights, compute, loaded); })
          .then([&]() -> result<nothing> {
            if (loaded.stream) return nothing{};
            return tables();
          })
          .then([&]() -> result<nothing> {
            if (loaded.stream || !spec.normalised_head) return nothing{};
            return assign(resident_head_factors(dev, loaded.head_matrix()), loaded.head_factors);
          })
          .outcome();
  if (!ends.ok()) return ends.error();
  if (!loaded.stream) tell();
  for (std::int32_t i = 0; i < spec.n_layers; ++i) {
    layer_weights layer;
    if (auto packed = load_layer(dev, spec, weights, compute, where, i, layer); !packed.ok())
      return packed.error();
    if (loaded.stream)
      if (auto settled = settle_layer(offload->sep_layer, *loaded.stream, layer); !settled.ok())
        return settled.error();
    loaded.layers.push_back(std::move(layer));
    tell();
  }
  if (!loaded.stream) return loaded;
  auto settled = sequence()
                     .then(tables)
                     .then([&] { return settle_tables(dev, spec, most_rows, loaded); })
                     .outcome();
  if (!settled.ok()) return settled.error();
  tell();
  return loaded;
}

} // namespace twill::models
