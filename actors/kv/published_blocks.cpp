#include "actors/kv/published_blocks.hpp"

#include <utility>

namespace twill::actors {

namespace {
constexpr kv_medium all_media[] = {kv_medium::device, kv_medium::host, kv_medium::disk};
}

void published_blocks::begin(std::optional<std::uint64_t> scope) {
  scope_ = scope;
  blocks_.clear();
  note_({});
}

published_blocks::entry& published_blocks::at(const block_key& key) {
  entry& e = blocks_[key];
  e.key = key;
  return e;
}

void published_blocks::know(entry& e, block_identity block) {
  kv_block content{block.key.first, {}, std::move(block.tokens)};
  const bool begins = scope_ && block.parent == root_key(*scope_);
  if (!begins) content.parent = block.parent.first;
  entry* const parent = begins ? nullptr : &at(block.parent);
  // the last allocation that may fail
  e.block = std::make_shared<const kv_block>(std::move(content));
  e.begins = begins;
  if (begins) return;
  e.parent = parent;
  e.after = parent->first_child;
  if (e.after != nullptr) e.after->before = &e;
  parent->first_child = &e;
}

void published_blocks::stored(block_identity block, kv_medium medium) {
  entry& e = at(block.key);
  if (!e.block) know(e, std::move(block));
  if ((e.media & bit(medium)) != 0) return;
  e.media |= bit(medium);
  if (e.published)
    note_({kv_event_kind::stored, medium, e.block});
  else if (e.begins || (e.parent != nullptr && e.parent->published))
    publish(e);
}

void published_blocks::removed(const block_key& block, kv_medium medium) {
  if (const auto found = blocks_.find(block); found != blocks_.end()) remove(found->second, medium);
}

void published_blocks::remove(entry& e, kv_medium medium) {
  if ((e.media & bit(medium)) == 0) return;
  e.media &= static_cast<std::uint8_t>(~bit(medium));
  if (e.published) note_({kv_event_kind::removed, medium, e.block});
  if (e.media == 0) e.published = false;
  forget(&e);
}

/// Publishes the block and all blocks that waited for it.
void published_blocks::publish(entry& first) {
  std::vector<entry*> next{&first};
  while (!next.empty()) {
    entry& e = *next.back();
    next.pop_back();
    e.published = true;
    for (const auto medium : all_media)
      if ((e.media & bit(medium)) != 0) note_({kv_event_kind::stored, medium, e.block});
    for (entry* child = e.first_child; child != nullptr; child = child->after)
      if (child->media != 0 && !child->published) next.push_back(child);
  }
}

/// Erases the entry if no medium (device, host memory, disk) has its block and no entry has it as a
/// parent. Then does the same with its parent, and so on.
void published_blocks::forget(entry* e) {
  while (e != nullptr && e->media == 0 && e->first_child == nullptr) {
    entry* const parent = e->parent;
    if (e->before != nullptr)
      e->before->after = e->after;
    else if (parent != nullptr)
      parent->first_child = e->after;
    if (e->after != nullptr) e->after->before = e->before;
    blocks_.erase(e->key);
    e = parent;
  }
}

void published_blocks::device_is_empty() {
  std::vector<block_key> on_device;
  bool elsewhere = false;
  for (const auto& [key, e] : blocks_) {
    if ((e.media & bit(kv_medium::device)) != 0) on_device.push_back(key);
    elsewhere = elsewhere || (e.media & ~bit(kv_medium::device)) != 0;
  }
  if (!elsewhere) return begin(scope_);
  for (const auto& key : on_device)
    remove(blocks_.at(key), kv_medium::device);
}

std::vector<kv_event> published_blocks::everything() {
  std::vector<kv_event> events(1); // the first event is `cleared`
  std::vector<entry*> next;
  for (auto& [key, e] : blocks_) {
    e.published = false;
    if (e.begins && e.media != 0) next.push_back(&e);
  }
  while (!next.empty()) {
    entry& e = *next.back();
    next.pop_back();
    e.published = true;
    for (const auto medium : all_media)
      if ((e.media & bit(medium)) != 0) events.push_back({kv_event_kind::stored, medium, e.block});
    for (entry* child = e.first_child; child != nullptr; child = child->after)
      if (child->media != 0) next.push_back(child);
  }
  return events;
}

} // namespace twill::actors
