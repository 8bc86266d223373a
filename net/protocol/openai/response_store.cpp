#include "net/protocol/openai/response_store.hpp"

#include <algorithm>

namespace twill::net {
namespace {

/// Estimates the heap memory of a tree of JSON values. An estimate that grows with the tree is
/// sufficient for limiting the total.
std::size_t tree_bytes(const value& tree) {
  std::size_t bytes = sizeof(value);
  if (const auto* text = tree.as_string()) bytes += text->size();
  if (const auto* list = tree.as_list())
    for (const auto& member : *list)
      bytes += tree_bytes(member);
  if (const auto* object = tree.as_object())
    for (const auto& [name, member] : *object)
      bytes += sizeof(std::string) + name.size() + tree_bytes(member);
  return bytes;
}

} // namespace

void response_store::put(const std::string& id, const std::string& tenant, std::uint64_t scope,
                         remembered_response response) {
  std::size_t bytes = 256 + response.instructions.size() + tree_bytes(response.tools);
  for (const auto& message : response.messages)
    bytes += tree_bytes(message);
  if (bytes > max_bytes_ || max_entries_ == 0) return;
  auto shared = std::make_shared<const remembered_response>(std::move(response));
  const std::lock_guard lock(mutex_);
  if (const auto old = by_id_.find(id); old != by_id_.end()) drop(old->second);
  if (!make_room(tenant, bytes)) return;
  auto& own = tenants_[tenant];
  own.by_age.push_back({id, tenant, scope, bytes, std::move(shared)});
  own.bytes += bytes;
  by_id_[id] = std::prev(own.by_age.end());
  bytes_ += bytes;
}

/// Returns which fraction of the store a tenant uses: its fraction of the bytes or of the entries,
/// whichever is larger.
double response_store::part_of(std::size_t bytes, std::size_t n_entries) const {
  return std::max(static_cast<double>(bytes) / static_cast<double>(max_bytes_),
                  static_cast<double>(n_entries) / static_cast<double>(max_entries_));
}

/// Removes entries until the new entry fits. Returns false if the new entry must not be stored,
/// because this tenant has no other entry and the new one alone takes a larger fraction of the
/// store than any other tenant has.
bool response_store::make_room(const std::string& tenant, std::size_t bytes) {
  while (bytes_ + bytes > max_bytes_ || by_id_.size() >= max_entries_) {
    const auto own = tenants_.find(tenant);
    auto most = own;
    double part = own == tenants_.end()
                      ? part_of(bytes, 1)
                      : part_of(own->second.bytes + bytes, own->second.by_age.size() + 1);
    for (auto other = tenants_.begin(); other != tenants_.end(); ++other) {
      const double its = part_of(other->second.bytes, other->second.by_age.size());
      const bool is_next = its > part || (its == part && most == tenants_.end());
      if (other == own || !is_next) continue;
      most = other;
      part = its;
    }
    if (most == tenants_.end()) return false;
    drop(most->second.by_age.begin());
  }
  return true;
}

remembered_ptr response_store::find(const std::string& id, const std::string& tenant,
                                    std::uint64_t scope) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return nullptr;
  const auto& e = *found->second;
  const bool visible = e.tenant == tenant && (e.scope == 0 || e.scope == scope);
  return visible ? e.response : nullptr;
}

void response_store::erase(const std::string& id, std::uint64_t scope) {
  const std::lock_guard lock(mutex_);
  if (const auto found = by_id_.find(id); found != by_id_.end() && found->second->scope == scope)
    drop(found->second);
}

std::size_t response_store::held_bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

void response_store::drop(entries::iterator which) {
  bytes_ -= which->bytes;
  by_id_.erase(which->id);
  const auto of = tenants_.find(which->tenant);
  of->second.bytes -= which->bytes;
  of->second.by_age.erase(which);
  if (of->second.by_age.empty()) tenants_.erase(of);
}

} // namespace twill::net
