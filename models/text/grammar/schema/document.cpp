#include "models/text/grammar/schema/document.hpp"

#include <charconv>
#include <set>
#include <utility>

#include "models/checkpoint/json.hpp"

namespace twill::models::grammar {
namespace {

int draft_of(const value& root) {
  const auto* stated = member(root, "$schema");
  if (stated == nullptr || stated->as_string() == nullptr) return 2020;
  const auto& uri = *stated->as_string();
  const auto names = [&uri](std::string_view part) { return uri.find(part) != std::string::npos; };
  if (names("draft-03"))
    refuse(errc::unsupported, "`$schema`: JSON Schema draft 3 is not supported");
  if (names("draft-04")) return 4;
  if (names("draft-06")) return 6;
  if (names("draft-07")) return 7;
  if (names("2019-09")) return 2019;
  return 2020;
}

std::string without_fragment(const std::string& uri) {
  return uri.substr(0, uri.find('#'));
}

/// Percent-encoding and ~0, ~1 of one part of a JSON pointer.
std::string unescaped_part(std::string_view part) {
  std::string plain;
  for (std::size_t i = 0; i < part.size(); ++i) {
    unsigned byte = 0;
    if (part[i] == '%' && i + 2 < part.size() &&
        std::from_chars(part.data() + i + 1, part.data() + i + 3, byte, 16).ptr ==
            part.data() + i + 3) {
      plain += static_cast<char>(byte);
      i += 2;
    } else {
      plain += part[i];
    }
  }
  std::string out;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    if (plain[i] == '~' && i + 1 < plain.size() && (plain[i + 1] == '0' || plain[i + 1] == '1'))
      out += plain[++i] == '0' ? '~' : '/';
    else
      out += plain[i];
  }
  return out;
}

std::string escaped_part(const std::string& key) {
  std::string out;
  for (const char c : key)
    c == '~' ? out += "~0" : c == '/' ? out += "~1" : out += c;
  return out;
}

} // namespace

const value* member(const value& v, std::string_view key) {
  const auto* object = v.as_object();
  if (object == nullptr) return nullptr;
  for (const auto& [name, inner] : *object)
    if (name == key) return &inner;
  return nullptr;
}

document::document(std::string_view schema_text) {
  auto parsed = parse_json(schema_text, "schema");
  if (!parsed.ok()) refuse(errc::bad_json, "the schema is not JSON: " + parsed.detail());
  root_ = std::make_unique<value>(std::move(parsed.value()));
  if (root_->as_object() == nullptr && root_->as_bool() == nullptr)
    refuse(errc::bad_schema, "a schema must be an object, true or false");
  draft_ = draft_of(*root_);
  index(*root_, "#", root_.get());
}

void document::index(const value& v, const std::string& pointer, const value* base) {
  static const std::set<std::string> data{"enum", "const", "default", "examples", "example"};
  const auto* id = member(v, draft_ == 4 ? "id" : "$id");
  if (id != nullptr && id->as_string() != nullptr) {
    const auto& text = *id->as_string();
    const auto uri = without_fragment(text);
    if (!uri.empty()) {
      base = &v;
      ids_.emplace(uri, &v);
    }
    if (const auto hash = text.find('#'); hash != std::string::npos && hash + 1 < text.size())
      anchors_.emplace(std::pair{base, text.substr(hash + 1)}, &v);
  }
  if (const auto* anchor = member(v, "$anchor");
      anchor != nullptr && anchor->as_string() != nullptr)
    anchors_.emplace(std::pair{base, *anchor->as_string()}, &v);
  pointers_.emplace(&v, pointer);
  bases_.emplace(&v, base);
  if (const auto* object = v.as_object()) {
    for (const auto& [key, inner] : *object)
      if (!data.contains(key)) index(inner, pointer + "/" + escaped_part(key), base);
  } else if (const auto* list = v.as_list()) {
    for (std::size_t i = 0; i < list->size(); ++i)
      index((*list)[i], pointer + "/" + std::to_string(i), base);
  }
}

std::string document::pointer_to(const value& part) const {
  const auto found = pointers_.find(&part);
  return found == pointers_.end() ? "#" : found->second;
}

const value& document::follow(const value& base, std::string_view pointer,
                              const std::string& reference) const {
  const value* at = &base;
  while (!pointer.empty()) {
    pointer.remove_prefix(1); // the slash
    const auto part = unescaped_part(pointer.substr(0, pointer.find('/')));
    pointer = pointer.find('/') == std::string_view::npos ? "" : pointer.substr(pointer.find('/'));
    const value* next = member(*at, part);
    if (const auto* list = at->as_list()) {
      std::size_t i = 0;
      const auto [end, bad] = std::from_chars(part.data(), part.data() + part.size(), i);
      if (bad == std::errc{} && end == part.data() + part.size() && i < list->size())
        next = &(*list)[i];
    }
    if (next == nullptr)
      refuse(errc::bad_schema, "`$ref` to " + reference + ", which the schema does not hold");
    at = next;
  }
  return *at;
}

const value& document::resolve(const value& from, const std::string& reference) const {
  const auto found_base = bases_.find(&from);
  const value* base = found_base == bases_.end() ? root_.get() : found_base->second;
  const auto uri = without_fragment(reference);
  if (!uri.empty()) {
    const auto known = ids_.find(uri);
    if (known == ids_.end())
      refuse(errc::unsupported, "`$ref` to " + reference + ": other documents are not fetched");
    base = known->second;
  }
  const auto hash = reference.find('#');
  const auto fragment = hash == std::string::npos ? std::string() : reference.substr(hash + 1);
  if (fragment.empty()) return *base;
  if (fragment.front() == '/') {
    // Drafts differ in whether a pointer starts at the nearest $id; schemas in use mean the whole
    // file.
    try {
      return follow(*base, fragment, reference);
    } catch (const refusal&) {
      return follow(*root_, fragment, reference);
    }
  }
  const auto anchor = anchors_.find({base, fragment});
  if (anchor == anchors_.end())
    refuse(errc::bad_schema, "`$ref` to " + reference + ", an unknown anchor");
  return *anchor->second;
}

} // namespace twill::models::grammar
