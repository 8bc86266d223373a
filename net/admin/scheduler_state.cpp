#include "net/admin/scheduler_state.hpp"

#include <utility>

#include "net/admin/engine_answer.hpp"

namespace twill::net {
namespace {

using snapshots = std::vector<actors::scheduler_snapshot>;

void add_sequences(json_writer& json, const char* name,
                   const std::vector<actors::scheduler_snapshot::sequence>& all) {
  json.key(name).begin_array();
  for (const auto& one : all) {
    json.begin_object().field("request", one.request).field("sequence", one.id);
    json.field("tenant", one.tenant).field("id", one.client_id);
    if (one.choice > 0) json.field("choice", one.choice);
    json.field("state", one.paused ? "paused" : one.running ? "running" : "waiting");
    json.field("tokens", one.tokens).field("max_tokens", one.max_tokens);
    json.field("kv_blocks", one.n_blocks).field("blocks", one.blocks).end_object();
  }
  json.end_array();
}

} // namespace

std::vector<actors::scheduler_snapshot> ask_schedulers(const actors::engine_port& engine) {
  auto all = engine_answer<snapshots>([&](auto tell) { engine.describe(std::move(tell)); });
  return all ? std::move(*all) : snapshots();
}

void add_scheduler_state(json_writer& json, const snapshots& all,
                         const std::vector<actors::mailbox_depth>& mailboxes) {
  json.key("schedulers").begin_array();
  for (const auto& one : all) {
    json.begin_object().field("model", one.model).field("kv_blocks_total", one.total_blocks);
    json.field("kv_blocks_used", one.used_blocks).field("kv_blocks_free", one.free_blocks);
    json.field("cached", one.cached).field("tied", one.pinned_by_child);
    add_sequences(json, "sequences", one.sequences);
    add_sequences(json, "orphans", one.orphans);
    json.end_object();
  }
  json.end_array().key("mailboxes").begin_array();
  for (const auto& one : mailboxes)
    json.begin_object()
        .field("model", one.model)
        .field("actor", one.actor)
        .field("depth", one.depth)
        .end_object();
  json.end_array();
}

} // namespace twill::net
