#include "models/text/jinja/runtime.hpp"

#include "models/text/text_limits.hpp"

namespace twill::models::jinja {

void runtime::charge_text(std::size_t bytes) {
  text_bytes_ += bytes;
  if (bytes > bounds_.text_bytes || text_bytes_ > bounds_.total_text_bytes)
    fail("template makes too much text");
  if (text_limits::unwanted()) fail("nobody waits for the prompt any more");
  add_work(bytes / 64);
}

void runtime::charge_elements(std::size_t n) {
  elements_ += n;
  if (n > bounds_.elements || elements_ > bounds_.elements) fail("template makes too many values");
}

val runtime::make_text(text t) {
  charge_text(t.bytes.size());
  return val(std::make_shared<const text>(std::move(t)));
}

list_data* runtime::make_list(list_data::kind_t kind, std::vector<val> items) {
  charge_elements(1 + items.size());
  lists_.push_back({kind, std::move(items), false});
  return &lists_.back();
}

dict_data* runtime::make_dict() {
  charge_elements(1);
  dicts_.emplace_back();
  return &dicts_.back();
}

void runtime::set(dict_data& dict, val key, val value) {
  if (key.as_list() != nullptr && key.as_list()->kind == list_data::list)
    fail("unhashable type: 'list'");
  if (key.as_dict() != nullptr) fail("unhashable type: 'dict'");
  add_work(1 + dict.items.size() / 8);
  charge_elements(1);
  dict.set(std::move(key), std::move(value));
}

val runtime::undefined(std::string reason) {
  return val(undefined_t{std::make_shared<const std::string>(std::move(reason))});
}

std::vector<val> runtime::iterate(const val& v) {
  if (v.is_undefined()) return {};
  if (auto* l = v.as_list()) {
    add_work(l->items.size());
    if (l->kind != list_data::generator) return l->items;
    if (l->consumed) return {};
    l->consumed = true;
    return l->items;
  }
  std::vector<val> items;
  if (const auto* d = v.as_dict()) {
    add_work(d->items.size());
    items.reserve(d->items.size());
    for (const auto& item : d->items)
      items.push_back(item.first);
    return items;
  }
  if (const text* t = v.as_text()) {
    const auto offsets = character_offsets(t->bytes);
    charge_elements(offsets.size());
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i)
      items.push_back(make_text(slice_bytes(*t, offsets[i], offsets[i + 1])));
    return items;
  }
  fail("'" + type_name(v) + "' object is not iterable");
}

} // namespace twill::models::jinja
