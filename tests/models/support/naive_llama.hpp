// The Llama forward pass in double precision, written for clarity: the oracle for the decoder.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "models/checkpoint/checkpoint.hpp"
#include "models/checkpoint/half.hpp"
#include "models/spec.hpp"

namespace twill::test {

using row = std::vector<double>;

class naive_llama {
public:
  naive_llama(const models::model_spec& spec, const models::checkpoint& weights)
      : spec_(spec), weights_(weights) {}

  /// Logits after each of `ids`.
  std::vector<row> forward(const std::vector<std::int32_t>& ids) const {
    std::vector<row> hidden;
    const std::vector<row> table = matrix(spec_.names.embedding);
    for (const std::int32_t id : ids)
      hidden.push_back(table[static_cast<std::size_t>(id)]);
    for (std::int32_t l = 0; l < spec_.n_layers; ++l)
      layer(l, hidden);
    const std::vector<row> head = spec_.tied_head ? table : matrix(spec_.names.head);
    const row norm = vector(spec_.names.final_norm);
    std::vector<row> logits;
    for (const row& h : hidden)
      logits.push_back(multiply(head, normed(h, norm), {}));
    return logits;
  }

private:
  std::vector<row> matrix(const std::string& name) const {
    const auto m = weights_.matrix(name).value();
    std::vector<row> rows;
    std::vector<std::uint8_t> codes(static_cast<std::size_t>(m.cols));
    std::vector<float> scales(codes.size()), offsets(codes.size());
    for (std::int64_t r = 0; r < m.rows; ++r) {
      row values(codes.size());
      if (m.grouped) m.grouped(r, {codes.data(), scales.data(), offsets.data()});
      const void* dense = m.grouped ? nullptr : m.dense_row(r);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::size_t g = m.grouped ? i / static_cast<std::size_t>(m.group) : 0;
        if (m.grouped)
          values[i] = double{scales[g]} * codes[i] + offsets[g];
        else if (m.kind == gpu::weight_kind::f32)
          values[i] = static_cast<const float*>(dense)[i];
        else if (m.kind == gpu::weight_kind::f16)
          values[i] = models::widen_f16(static_cast<const std::uint16_t*>(dense)[i]);
        else
          values[i] = models::widen_bf16(static_cast<const std::uint16_t*>(dense)[i]);
      }
      rows.push_back(values);
    }
    return rows;
  }

  row vector(const std::string& name) const {
    if (weights_.find(name) == nullptr) return {};
    const auto values = weights_.vector(name).value();
    return row(values.begin(), values.end());
  }

  static row multiply(const std::vector<row>& m, const row& x, const row& bias) {
    row out;
    for (std::size_t r = 0; r < m.size(); ++r) {
      double sum = bias.empty() ? 0 : bias[r];
      for (std::size_t i = 0; i < x.size(); ++i)
        sum += m[r][i] * x[i];
      out.push_back(sum);
    }
    return out;
  }

  row normed(const row& x, const row& weight) const {
    double squares = 0;
    for (const double v : x)
      squares += v * v;
    const double scale =
        1 / std::sqrt(squares / static_cast<double>(x.size()) + double{spec_.norm_epsilon});
    row out(x.size());
    for (std::size_t i = 0; i < x.size(); ++i)
      out[i] = x[i] * scale * weight[i];
    return out;
  }

  void rotate(row& heads, std::size_t position) const {
    const auto d = static_cast<std::size_t>(spec_.head_dim);
    for (std::size_t h = 0; h < heads.size() / d; ++h)
      for (std::size_t i = 0; i < spec_.rope.inv_freq.size(); ++i) {
        const double angle = static_cast<double>(position) * spec_.rope.inv_freq[i];
        double& a = heads[h * d + 2 * i];
        double& b = heads[h * d + 2 * i + 1];
        const double rotated = a * std::cos(angle) - b * std::sin(angle);
        b = a * std::sin(angle) + b * std::cos(angle);
        a = rotated;
      }
  }

  row attend(const row& q, const std::vector<row>& keys, const std::vector<row>& values,
             std::size_t at) const {
    const auto d = static_cast<std::size_t>(spec_.head_dim);
    const auto group = static_cast<std::size_t>(spec_.n_heads / spec_.n_kv_heads);
    const auto window = static_cast<std::size_t>(spec_.window);
    const std::size_t first = window > 0 && at + 1 > window ? at + 1 - window : 0;
    row out(q.size());
    for (std::size_t h = 0; h < q.size() / d; ++h) {
      const std::size_t from = h / group * d;
      double total = 0;
      row sum(d);
      for (std::size_t t = first; t <= at; ++t) {
        double score = 0;
        for (std::size_t i = 0; i < d; ++i)
          score += q[h * d + i] * keys[t][from + i];
        const double weight = std::exp(score * double{spec_.attention_scale});
        total += weight;
        for (std::size_t i = 0; i < d; ++i)
          sum[i] += weight * values[t][from + i];
      }
      for (std::size_t i = 0; i < d; ++i)
        out[h * d + i] = sum[i] / total;
    }
    return out;
  }

  void layer(std::int32_t l, std::vector<row>& hidden) const {
    const auto name = [&](const std::string& pattern) { return models::layer_tensor(pattern, l); };
    const auto bias = [&](const std::string& pattern) {
      return vector(models::bias_of(name(pattern)));
    };
    const models::tensor_names& n = spec_.names;
    const auto wq = matrix(name(n.q)), wk = matrix(name(n.k)), wv = matrix(name(n.v)),
               wo = matrix(name(n.o)), gate = matrix(name(n.gate)), up = matrix(name(n.up)),
               down = matrix(name(n.down));
    const row attention_norm = vector(name(n.attention_norm)), mlp_norm = vector(name(n.mlp_norm));
    std::vector<row> queries, keys, values;
    for (std::size_t t = 0; t < hidden.size(); ++t) {
      const row x = normed(hidden[t], attention_norm);
      queries.push_back(multiply(wq, x, bias(n.q)));
      keys.push_back(multiply(wk, x, bias(n.k)));
      values.push_back(multiply(wv, x, bias(n.v)));
      rotate(queries[t], t);
      rotate(keys[t], t);
    }
    for (std::size_t t = 0; t < hidden.size(); ++t) {
      add(hidden[t], multiply(wo, attend(queries[t], keys, values, t), bias(n.o)));
      const row x = normed(hidden[t], mlp_norm);
      row g = multiply(gate, x, bias(n.gate));
      const row u = multiply(up, x, bias(n.up));
      for (std::size_t i = 0; i < g.size(); ++i)
        g[i] = g[i] / (1 + std::exp(-g[i])) * u[i];
      add(hidden[t], multiply(down, g, bias(n.down)));
    }
  }

  static void add(row& to, const row& x) {
    for (std::size_t i = 0; i < to.size(); ++i)
      to[i] += x[i];
  }

  const models::model_spec& spec_;
  const models::checkpoint& weights_;
};

} // namespace twill::test
