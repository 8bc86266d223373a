#include "net/admin/admin_stream.hpp"

#include <algorithm>
#include <utility>

#include "config/base/fault_log.hpp"
#include "config/base/log.hpp"
#include "net/error_map.hpp"

namespace twill::net {

admin_stream::admin_stream(dialect_scope scope)
    : scope_(std::move(scope)), woken_(scope_.watched->subscribe(scope_.host.waker())) {}

void admin_stream::on_error(const api_error& error) {
  error_ = error;
}

bool admin_stream::next_frame(std::string& out) {
  if (over_) return false;
  if (!error_.has_value() && !is_still_admin()) error_ = unknown_key();
  if (error_.has_value()) {
    over_ = true;
    out = R"({"type":"error",)" + error_body(*error_).substr(1);
    return true;
  }
  if (!history_sent_) {
    history_sent_ = true;
    out = *scope_.watched->history().text;
    return true;
  }
  if (next_faults(out)) return true;
  const auto newest = scope_.watched->latest();
  if (newest.number <= sample_sent_) return false;
  sample_sent_ = newest.number;
  out = *newest.text;
  return true;
}

/// Checks again whether the client is an administrator, because its key may have been removed since
/// the handshake. A client at a Unix socket needs no key.
bool admin_stream::is_still_admin() const {
  if (scope_.holder.tenant.empty()) return true;
  const auto current = scope_.current.get();
  const auto* owner = current->tenant(scope_.holder.tenant);
  return owner != nullptr && owner->admin && current->keys.admit(scope_.holder);
}

bool admin_stream::next_faults(std::string& out) {
  const auto changed = log::faults().changed_after(faults_sent_);
  if (changed.empty()) return false;
  out.clear();
  json_writer json(out);
  json.begin_object().field("type", "faults").key("faults").begin_array();
  for (const auto& one : changed) {
    faults_sent_ = std::max(faults_sent_, one.version);
    json.begin_object().field("id", one.id).field("at_unix_ms", one.at_unix_ms);
    json.field("times", one.times).field("level", one.is_error ? "error" : "warn");
    std::string message;
    log::append_json_string(message, one.message);
    json.key("message").raw(message).end_object();
  }
  json.end_array().end_object();
  return true;
}

} // namespace twill::net
