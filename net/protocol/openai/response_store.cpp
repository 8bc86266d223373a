#include "net/protocol/openai/response_store.hpp"

namespace twill::net {
namespace {

/// An estimate of the heap that a tree takes; it grows with the tree, which is all a budget needs.
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
  if (bytes > max_bytes_) return;
  auto shared = std::make_shared<const remembered_response>(std::move(response));
  const std::lock_guard lock(mutex_);
  if (const auto old = by_id_.find(id); old != by_id_.end()) drop(old->second);
  while (!by_age_.empty() && (bytes_ + bytes > max_bytes_ || by_age_.size() >= max_entries_))
    drop(by_age_.begin());
  by_age_.push_back({id, tenant, scope, bytes, std::move(shared)});
  by_id_[id] = std::prev(by_age_.end());
  bytes_ += bytes;
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
  by_age_.erase(which);
}

} // namespace twill::net
