#include "models/text/grammar/schema/document.hpp"

#include <algorithm>
#include <charconv>
#include <map>
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

/// Decodes the percent-encoding and the escapes ~0 and ~1 of one part of a JSON pointer.
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

/// True for keywords that were added by draft 2020-12, 2019-09, 7 or 6. An earlier draft does not
/// know such a keyword, and a validator ignores unknown keywords.
bool is_later_keyword(std::string_view key, int draft) {
  static const std::map<std::string_view, int> since{{"prefixItems", 2020},
                                                     {"$dynamicRef", 2020},
                                                     {"$dynamicAnchor", 2020},
                                                     {"dependentRequired", 2019},
                                                     {"dependentSchemas", 2019},
                                                     {"minContains", 2019},
                                                     {"maxContains", 2019},
                                                     {"unevaluatedItems", 2019},
                                                     {"unevaluatedProperties", 2019},
                                                     {"$anchor", 2019},
                                                     {"$recursiveRef", 2019},
                                                     {"if", 7},
                                                     {"then", 7},
                                                     {"else", 7},
                                                     {"const", 6},
                                                     {"contains", 6},
                                                     {"propertyNames", 6}};
  const auto found = since.find(key);
  return found != since.end() && draft < found->second;
}

bool holds_data(std::string_view key) {
  static const std::set<std::string_view> keys{"enum", "const", "default", "examples", "example"};
  return keys.contains(key);
}

/// True for keywords whose value is an object that maps names to schemas.
bool holds_named_schemas(std::string_view key) {
  static const std::set<std::string_view> keys{"properties",  "patternProperties", "$defs",
                                               "definitions", "dependentSchemas",  "dependencies"};
  return keys.contains(key);
}

/// Returns the schema without the keywords of later drafts.
value without_later_keywords(const value& v, int draft, bool is_schema) {
  if (const auto* list = v.as_list()) {
    value_list out;
    for (const auto& part : *list)
      out.push_back(without_later_keywords(part, draft, is_schema));
    return value(std::move(out));
  }
  if (v.as_object() == nullptr) return v;
  value_object out;
  for (const auto& [key, inner] : *v.as_object()) {
    if (is_schema && is_later_keyword(key, draft)) continue;
    if (is_schema && holds_data(key))
      out.emplace_back(key, inner);
    else
      out.emplace_back(
          key, without_later_keywords(inner, draft, !(is_schema && holds_named_schemas(key))));
  }
  return value(std::move(out));
}

/// Resolves the URI reference `reference` against the URI `base` as RFC 3986 section 5.2 says,
/// except that the path segments "." and ".." are kept as they are.
std::string resolved_uri(const std::string& base, const std::string& reference) {
  const auto scheme_end = [](const std::string& uri) {
    const auto colon = uri.find(':');
    return colon != std::string::npos && colon < uri.find_first_of("/?#") ? colon + 1 : 0;
  };
  if (base.empty() || scheme_end(reference) > 0) return reference;
  const auto scheme = scheme_end(base);
  if (reference.starts_with("//")) return base.substr(0, scheme) + reference;
  auto path = scheme;
  if (base.compare(scheme, 2, "//") == 0) path = std::min(base.find('/', scheme + 2), base.size());
  if (reference.starts_with("/")) return base.substr(0, path) + reference;
  const auto last = base.rfind('/');
  if (last == std::string::npos || last < path) return base.substr(0, path) + "/" + reference;
  return base.substr(0, last + 1) + reference;
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
  if (draft_ < 2020) *root_ = without_later_keywords(*root_, draft_, true);
  index(*root_, "#", root_.get(), true);
}

void document::add_id(const value& v, const std::string& uri, const value* outer) {
  const auto around = uris_.find(outer);
  const auto whole = resolved_uri(around == uris_.end() ? "" : around->second, uri);
  ids_.emplace(uri, &v);
  ids_.emplace(whole, &v);
  uris_.emplace(&v, whole);
}

void document::index(const value& v, const std::string& pointer, const value* base,
                     bool is_schema) {
  const auto* id = is_schema ? member(v, draft_ == 4 ? "id" : "$id") : nullptr;
  if (id != nullptr && id->as_string() != nullptr) {
    const auto& text = *id->as_string();
    const auto uri = without_fragment(text);
    if (!uri.empty()) {
      add_id(v, uri, base);
      base = &v;
    }
    if (const auto hash = text.find('#'); hash != std::string::npos && hash + 1 < text.size())
      anchors_.emplace(std::pair{base, text.substr(hash + 1)}, &v);
  }
  if (const auto* anchor = is_schema ? member(v, "$anchor") : nullptr;
      anchor != nullptr && anchor->as_string() != nullptr)
    anchors_.emplace(std::pair{base, *anchor->as_string()}, &v);
  pointers_.emplace(&v, pointer);
  bases_.emplace(&v, base);
  if (const auto* object = v.as_object()) {
    for (const auto& [key, inner] : *object)
      if (!is_schema || !holds_data(key))
        index(inner, pointer + "/" + escaped_part(key), base,
              !(is_schema && holds_named_schemas(key)));
  } else if (const auto* list = v.as_list()) {
    for (std::size_t i = 0; i < list->size(); ++i)
      index((*list)[i], pointer + "/" + std::to_string(i), base, is_schema);
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
    pointer.remove_prefix(1); // removes the slash
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
    const auto around = uris_.find(base);
    auto known = ids_.find(resolved_uri(around == uris_.end() ? "" : around->second, uri));
    if (known == ids_.end()) known = ids_.find(uri);
    if (known == ids_.end())
      refuse(errc::unsupported, "`$ref` to " + reference + ": other documents are not fetched");
    base = known->second;
  }
  const auto hash = reference.find('#');
  const auto fragment = hash == std::string::npos ? std::string() : reference.substr(hash + 1);
  if (fragment.empty()) return *base;
  if (fragment.front() == '/') {
    // Drafts differ in whether a pointer starts at the nearest $id or at the root of the document.
    // The nearest $id is tried first. If the pointer leads nowhere from there, the root is tried,
    // because schemas in use mean the root.
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
