#include "models/offload/plan/cost_model.hpp"

#include <algorithm>

namespace twill::models::offload {

resource_seconds& resource_seconds::add(const resource_seconds& other, double times) {
  for (std::size_t i = 0; i < s.size(); ++i)
    s[i] += other.s[i] * times;
  return *this;
}

offload_resource resource_seconds::busiest() const {
  return static_cast<offload_resource>(std::max_element(s.begin(), s.end()) - s.begin());
}

namespace {

using enum offload_resource;

class cost_maker {
public:
  cost_maker(const offload_model& model, const machine_description& machine,
             const offload_policy& policy)
      : m(model), on(machine), policy(policy) {}

  resource_seconds load(const tier_split& tiers, double bytes) const {
    resource_seconds out;
    out[h2d] = tiers.away() * bytes / on.h2d_bytes_per_s;
    out[disk_read] = tiers.disk() * bytes / on.disk_read_bytes_per_s;
    out[device] = on.disk_read_device_share * out[disk_read] +
                  on.copy_device_share * tiers.host * bytes / on.h2d_bytes_per_s;
    return out;
  }

  resource_seconds store(const tier_split& tiers, double bytes) const {
    resource_seconds out;
    out[d2h] = tiers.away() * bytes / on.d2h_bytes_per_s;
    out[disk_write] = tiers.disk() * bytes / on.disk_write_bytes_per_s;
    return out;
  }

  /// Seconds to pack the KV of `rows` positions to 4 bits or to unpack it. Only KV that is kept off
  /// the device is packed, so only that share is counted.
  double packing_s(double rows) const {
    const bool packs = m.kv_packed_bytes_per_value > 0 && on.unpacked_values_per_s > 0;
    return packs ? policy.kv.away() * 2 * m.kv_size * rows / on.unpacked_values_per_s : 0;
  }

  double device_s(double flops, double bytes) const {
    return std::max(flops / on.device_flops, bytes / on.device_bytes_per_s);
  }

  /// The time of a layer's products and activations. It is interpolated between the measured
  /// numbers of rows, proportional beyond them, and never less than the time to read the weights.
  double layer_s(double rows, double values) const {
    const double read_s = layer_weight_bytes(m) / on.device_bytes_per_s;
    if (on.layer.empty())
      return std::max(2 * rows * values / on.device_flops, read_s) + on.task_overhead_s;
    measured_rows before;
    for (const measured_rows& at : on.layer) {
      if (rows <= at.rows)
        return std::max(read_s, before.seconds + (at.seconds - before.seconds) *
                                                     (rows - before.rows) /
                                                     (at.rows - before.rows));
      before = at;
    }
    return std::max(read_s, before.seconds * rows / before.rows);
  }

  /// Products, activations and new KV for `tokens` of each sequence; attention is not included.
  task_cost linear(double tokens) const {
    const double rows = tokens * policy.batch_size;
    const double h = m.hidden_size, q = m.q_size, kv = m.kv_size;
    const double qkv = h * (q + 2 * kv);
    const double rest = q * h + (m.gated_mlp ? 3 : 2) * h * m.mlp_size;
    task_cost out;
    out.seconds[device] = layer_s(rows, qkv + rest);
    out.device_before_s = out.seconds[device] * qkv / (qkv + rest);
    const double hidden = m.hidden_bytes_per_value * h * rows;
    out.seconds.add(load(policy.hidden, hidden)).add(store(policy.hidden, hidden));
    out.seconds.add(store(policy.kv, kv_backing_bytes_per_position(m) * rows));
    out.seconds[device] += packing_s(rows);
    return out;
  }

  /// A prompt attends to itself, on the device; each row attends to half of it on average.
  void attend_prompt(task_cost& schedule_task, double tokens) const {
    const double pairs = tokens * tokens / 2 * policy.batch_size;
    schedule_task.seconds[device] += 4.0 * m.q_size * pairs / on.device_flops;
  }

  /// The cost of attention of one new token to one earlier position in each sequence of a
  /// micro-batch, including the transfers of that position's KV.
  resource_seconds attend_position() const {
    const double flops = 4.0 * m.q_size * policy.batch_size;
    const double bytes = kv_bytes_per_position(m) * policy.batch_size;
    const double on_host = policy.host_attention ? policy.kv.away() : 0;
    resource_seconds out;
    const double kv_rate =
        on.device_kv_bytes_per_s > 0 ? on.device_kv_bytes_per_s : on.device_bytes_per_s;
    out[device] = (1 - on_host) * std::max(flops / on.device_flops, bytes / kv_rate);
    out[on.one_processor ? device : host] +=
        on_host * std::max(flops / on.host_flops, bytes / on.host_bytes_per_s);
    if (policy.host_attention) {
      out[disk_read] = policy.kv.disk() * kv_backing_bytes_per_position(m) * policy.batch_size /
                       on.disk_read_bytes_per_s;
      out[device] += on.disk_read_device_share * out[disk_read];
    } else {
      out.add(load(policy.kv, kv_backing_bytes_per_position(m) * policy.batch_size));
    }
    out[device] += packing_s(policy.batch_size);
    return out;
  }

  /// Adds the copies of host attention: the queries to the host and the result back.
  void cross_over(task_cost& schedule_task) const {
    if (!policy.host_attention) return;
    const double bytes = policy.kv.away() * m.hidden_bytes_per_value * m.q_size * policy.batch_size;
    schedule_task.seconds[d2h] += bytes / on.d2h_bytes_per_s;
    schedule_task.seconds[h2d] += bytes / on.h2d_bytes_per_s;
  }

  /// The head, for the last token of each sequence.
  double head_s() const {
    const double flops = 2.0 * m.vocab_size * m.hidden_size * policy.batch_size;
    return device_s(flops, outer_weight_bytes(m));
  }

private:
  const offload_model& m;
  const machine_description& on;
  const offload_policy& policy;
};

} // namespace

offload_cost::offload_cost(const offload_model& model, const machine_description& machine,
                           const offload_policy& policy, const offload_workload& work) {
  const cost_maker make(model, machine, policy);
  fetch_ = make.load(policy.weights, layer_weight_bytes(model));
  if (!policy.outer_resident) outer_fetch_ = make.load(policy.weights, outer_weight_bytes(model));
  outer_[device] = make.head_s();
  prefill_ = make.linear(work.prompt_len);
  make.attend_prompt(prefill_, work.prompt_len);
  decode_ = make.linear(1);
  make.cross_over(decode_);
  decode_context_ = make.attend_position();
}

task_cost offload_cost::decode(double context) const {
  task_cost out = decode_;
  out.seconds.add(decode_context_, context);
  return out;
}

offload_estimate estimate(const offload_cost& cost, std::int32_t n_layers,
                          const offload_policy& policy, const offload_workload& work,
                          const schedule_load& load) {
  offload_estimate out;
  const resource_seconds decode_0 = cost.decode(0).seconds;
  resource_seconds decode_position = cost.decode(1).seconds;
  decode_position.add(decode_0, -1);
  for (const round_load& round : load.rounds) {
    resource_seconds prefills, tasks;
    prefills.add(cost.prefill().seconds, round.n_prefills);
    tasks.add(prefills).add(decode_0, round.n_decodes);
    tasks.add(decode_position, round.context_positions);
    resource_seconds layer = tasks;
    layer.add(cost.fetch());
    resource_seconds outer = cost.outer_fetch();
    outer.add(cost.outer(), round.n_prefills + round.n_decodes);

    const double seconds = round.count * (n_layers * layer.most() + outer.most());
    const offload_resource bound = layer.busiest();
    const double members = round.n_prefills + round.n_decodes;
    const double prefill_share =
        tasks[bound] > 0 ? prefills[bound] / tasks[bound] : round.n_prefills / members;
    out.prefill_s += seconds * prefill_share;
    out.decode_s += seconds * (1 - prefill_share);
    out.busy.add(layer, round.count * n_layers).add(outer, round.count);
  }
  const double prompts =
      work.n_prompts > 0 ? static_cast<double>(work.n_prompts) : load.n_batches * policy.batch_size;
  out.tokens_per_s = prompts * work.gen_len / out.total_s();
  return out;
}

offload_estimate estimate(const offload_model& model, const machine_description& machine,
                          const offload_policy& policy, const offload_workload& work) {
  const offload_cost cost(model, machine, policy, work);
  return estimate(cost, model.n_layers, policy, work, load_of(work, policy));
}

} // namespace twill::models::offload
