#include "net/stored/stored_table.hpp"

#include <algorithm>
#include <limits>

namespace twill::net {

stored_entry_ptr entry_of(const stored_head& head) {
  auto entry = std::make_shared<stored_entry>();
  entry->id = head.id;
  entry->tenant = head.tenant;
  entry->created_unix_s = head.created_unix_s;
  entry->background = head.background;
  entry->n_choices = head.n_choices;
  entry->deadline_unix_ms = head.deadline_unix_ms;
  return entry;
}

namespace {
/// The stored responses of one tenant may always take this many bytes, or a sixteenth of the
/// allowed total if that is less. These bytes have room for a long answer even if there are very
/// many tenants.
constexpr std::int64_t least_part = 1 << 20;
} // namespace

std::int64_t stored_table::part() const {
  const auto n = static_cast<std::int64_t>(std::max<std::size_t>(limits_.tenants(), 1));
  return std::max(limits_.max_bytes / n, std::min(limits_.max_bytes / 16, least_part));
}

stored_entry_ptr stored_table::find(const std::string& id, const std::string& tenant) const {
  const auto own = tenants_.find(tenant);
  if (own == tenants_.end()) return nullptr;
  const auto found = own->second.by_id.find(id);
  return found == own->second.by_id.end() ? nullptr : found->second;
}

void stored_table::add(const stored_entry_ptr& entry) {
  auto& own = tenants_[entry->tenant];
  own.by_id[entry->id] = entry;
  own.bytes += entry->room;
  bytes_ += entry->room;
}

void stored_table::set_room(stored_entry& entry, std::int64_t bytes) {
  const auto more = bytes - entry.room;
  entry.room = bytes;
  if (entry.forgotten) return;
  auto& own = tenants_.at(entry.tenant);
  own.bytes += more;
  if (own.place.contains(&entry)) own.bytes_over += more;
  bytes_ += more;
}

void stored_table::set_over(stored_entry& entry) {
  if (entry.forgotten) return;
  auto& own = tenants_.at(entry.tenant);
  own.place[&entry] = own.over.insert(own.over.end(), &entry);
  own.bytes_over += entry.room;
}

void stored_table::take_out(holding& from, stored_entry& entry) {
  from.bytes -= entry.room;
  bytes_ -= entry.room;
  if (const auto place = from.place.find(&entry); place != from.place.end()) {
    from.bytes_over -= entry.room;
    from.over.erase(place->second);
    from.place.erase(place);
  }
  entry.forgotten = true;
  from.by_id.erase(entry.id); // this may destroy `entry`
}

void stored_table::remove(stored_entry& entry) {
  if (entry.forgotten) return;
  const auto own = tenants_.find(entry.tenant);
  take_out(own->second, entry);
  if (own->second.by_id.empty()) tenants_.erase(own);
}

bool stored_table::make_room(const std::string& tenant, std::int64_t bytes,
                             std::vector<stored_entry_ptr>& out) {
  const auto most = part();
  const auto own = tenants_.find(tenant);
  if (own == tenants_.end()) return bytes <= most;
  auto& held = own->second;
  if (held.bytes - held.bytes_over + bytes > most) return false;
  std::vector<stored_entry_ptr> going;
  auto left = held.bytes;
  for (auto at = held.over.begin(); left + bytes > most; ++at) {
    if (at == held.over.end()) return false;
    if (!(*at)->readers.empty()) continue;
    going.push_back(held.by_id.at((*at)->id));
    left -= (*at)->room;
  }
  for (auto& one : going) {
    take_out(held, *one);
    out.push_back(std::move(one));
  }
  return true;
}

void stored_table::expire(std::int64_t now_unix_s, std::vector<stored_entry_ptr>& out) {
  for (auto own = tenants_.begin(); own != tenants_.end();) {
    auto& held = own->second;
    for (auto at = held.over.begin(); at != held.over.end();) {
      stored_entry* const one = *at++;
      if (expiry_of(*one) > now_unix_s) continue;
      out.push_back(held.by_id.at(one->id));
      take_out(held, *one);
    }
    own = held.by_id.empty() ? tenants_.erase(own) : std::next(own);
  }
}

std::int64_t stored_table::next_expiry_unix_s() const {
  auto first = std::numeric_limits<std::int64_t>::max();
  for (const auto& [tenant, held] : tenants_)
    for (const auto* one : held.over)
      first = std::min(first, expiry_of(*one));
  return first;
}

void stored_table::account(ledger& to) const {
  const std::string bytes = "bytes of stored responses",
                    of_tenants = "bytes of stored responses of tenants",
                    over = "bytes of stored responses that may go",
                    places = "stored responses that may go";
  to.taken(bytes, bytes_);
  for (const auto& [tenant, own] : tenants_) {
    to.taken(of_tenants, own.bytes);
    to.taken(over, own.bytes_over);
    to.taken(places, static_cast<std::int64_t>(own.place.size()));
    for (const auto& [id, entry] : own.by_id) {
      to.exists(id, true);
      to.held(bytes, id, entry->room);
      to.held(of_tenants, id, entry->room);
    }
    for (const stored_entry* entry : own.over) {
      to.held(over, entry->id, entry->room);
      to.held(places, entry->id);
    }
  }
}

std::vector<stored_entry_ptr> stored_table::all() const {
  std::vector<stored_entry_ptr> out;
  for (const auto& [tenant, held] : tenants_)
    for (const auto& [id, entry] : held.by_id)
      out.push_back(entry);
  return out;
}

} // namespace twill::net
