// document: a parsed JSON Schema, with the JSON pointers of its parts and the targets of its
// references.
//
// Immutable after parsing; any thread. Messages name a part by its JSON pointer ("#/properties/a").
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "config/base/value.hpp"
#include "models/text/grammar/errc.hpp"

namespace twill::models::grammar {

/// The member `key` of an object; nullptr if there is none or `v` is not an object.
const value* member(const value& v, std::string_view key);

class document {
public:
  /// Throws the exception refusal (bad_json, unsupported).
  explicit document(std::string_view schema_text);

  const value& root() const { return *root_; }
  /// The JSON pointer of a part of the schema, such as "#/properties/a".
  std::string pointer_to(const value& part) const;
  /// The part of the schema to which `reference`, found in `from`, points. Throws the exception
  /// refusal (unsupported, bad_schema).
  const value& resolve(const value& from, const std::string& reference) const;
  /// True for drafts before 2019-09, in which keywords beside $ref are ignored.
  bool ignores_beside_ref() const { return draft_ <= 7; }
  int draft() const { return draft_; } ///< 4, 6, 7, 2019 or 2020

private:
  void index(const value& v, const std::string& pointer, const value* base, bool is_schema);
  void add_id(const value& v, const std::string& uri, const value* outer);
  const value& follow(const value& base, std::string_view pointer,
                      const std::string& reference) const;

  std::unique_ptr<value> root_;
  int draft_ = 2020;
  std::unordered_map<const value*, std::string> pointers_;
  std::unordered_map<const value*, const value*>
      bases_; ///< for each part, the innermost part with an $id that contains it
  /// The parts of the schema that have an $id, by that $id without its fragment. A part is listed
  /// under the $id as written and under the $id as resolved against the enclosing $id.
  std::map<std::string, const value*> ids_;
  std::unordered_map<const value*, std::string> uris_; ///< the resolved URI of each base
  std::map<std::pair<const value*, std::string>, const value*> anchors_;
};

} // namespace twill::models::grammar
