// Finds what makes a schema fail to hold: one branch for each of its keywords that can be violated.
#include <algorithm>
#include <utility>

#include "models/text/grammar/schema/cases.hpp"
#include "models/text/grammar/schema/formats.hpp"

namespace twill::models::grammar {
namespace {

node with(node n, literal l) {
  n.push_back(l);
  return node_of(std::move(n));
}

bool always_holds(const value& schema) {
  return (schema.as_bool() != nullptr && *schema.as_bool()) ||
         (schema.as_object() != nullptr && schema.as_object()->empty());
}

} // namespace

void cases::apply_not(pending& at, const value& schema, int depth) {
  if (const auto* always = schema.as_bool()) {
    if (*always) at.so_far.types = 0;
    return;
  }
  if (schema.as_object() == nullptr)
    refuse(errc::bad_schema,
           doc_->pointer_to(schema) + ": a schema must be an object, true or false");
  choice branches;
  if (const auto ref = string_of(schema, "$ref", *doc_)) {
    if (depth > 100) refuse_keyword(errc::bad_schema, *doc_, schema, "$ref", "leads to itself");
    const auto& target = doc_->resolve(schema, *ref);
    branches.push_back([&target, depth](pending& p) {
      p.todo.push_back({{&target, false}, depth + 1});
    });
    if (doc_->ignores_beside_ref()) return at.choices.push_back(std::move(branches));
  }
  check_known(schema, *doc_);
  refute_scalars(branches, schema);
  refute_values(branches, schema);
  refute_items(branches, schema);
  refute_members(branches, schema);
  refute_combined(branches, schema, depth);
  // If there are no branches, the schema always holds. The empty choice then leaves no case.
  at.choices.push_back(std::move(branches));
}

void cases::refute_scalars(choice& branches, const value& schema) {
  if (const auto* type = member(schema, "type")) {
    unsigned bits = every_type;
    bool number = false, integer = false;
    for (const auto& name : type_names(*type)) {
      if (name == "null") bits &= ~unsigned{type_null};
      if (name == "boolean") bits &= ~unsigned{type_true | type_false};
      if (name == "string") bits &= ~unsigned{type_string};
      if (name == "array") bits &= ~unsigned{type_array};
      if (name == "object") bits &= ~unsigned{type_object};
      number |= name == "number";
      integer |= name == "integer";
    }
    if (number) bits &= ~unsigned{type_number};
    branches.push_back([bits, integer](pending& p) {
      only(p.so_far, bits);
      if (!integer) return;
      p.so_far.number.fraction = true;
      if (p.so_far.number.whole) p.so_far.types &= ~unsigned{type_number};
    });
  }
  for (const auto& bound : number_rules_of(schema, *doc_).bounds)
    branches.push_back([bound](pending& p) {
      only(p.so_far, type_number);
      p.so_far.number.bounds.push_back(
          {bound.at, !bound.is_least, !bound.exclusive, bound.rounded});
    });
  for (const auto& multiple : number_rules_of(schema, *doc_).multiples)
    branches.push_back([multiple](pending& p) {
      only(p.so_far, type_number);
      p.so_far.number.not_multiples.push_back(multiple);
    });
  if (const auto n = count_of(schema, "minLength", *doc_); n && *n > 0)
    branches.push_back([n = *n](pending& p) {
      only(p.so_far, type_string);
      at_most(p.so_far.string.max, n - 1);
    });
  if (const auto n = count_of(schema, "maxLength", *doc_))
    branches.push_back([n = *n](pending& p) {
      only(p.so_far, type_string);
      at_least(p.so_far.string.min, n + 1);
    });
  const auto refute_pattern = [&branches](const std::string& pattern) {
    branches.push_back([pattern](pending& p) {
      only(p.so_far, type_string);
      p.so_far.string.not_patterns.insert(pattern);
    });
  };
  if (const auto pattern = string_of(schema, "pattern", *doc_)) refute_pattern(*pattern);
  if (const auto* format = member(schema, "format");
      format != nullptr && format->as_string() != nullptr)
    if (const auto& pattern = format_pattern(*format->as_string()); !pattern.empty())
      refute_pattern(pattern);
}

void cases::refute_values(choice& branches, const value& schema) {
  std::vector<const value*> values;
  if (const auto* listed = member(schema, "enum");
      listed != nullptr && listed->as_list() != nullptr)
    for (const auto& v : *listed->as_list())
      values.push_back(&v);
  const auto exclude = [&branches](std::vector<const value*> none_of) {
    branches.push_back([none_of = std::move(none_of)](pending& p) {
      auto& c = p.so_far;
      for (const auto* v : none_of) {
        if (const auto* b = v->as_bool()) c.types &= ~unsigned{*b ? type_true : type_false};
        if (v->is_null()) c.types &= ~unsigned{type_null};
        if (const auto* s = v->as_string()) c.string.not_values.insert(*s);
        if (const auto number = decimal_of(*v)) c.number.not_values.push_back(*number);
        if (v->as_list() != nullptr || v->as_object() != nullptr) c.not_lists.push_back(v);
      }
    });
  };
  if (const auto* listed = member(schema, "enum")) {
    check_exact(*listed, schema, "enum", *doc_);
    exclude(values);
  }
  if (const auto* fixed = member(schema, "const")) {
    check_exact(*fixed, schema, "const", *doc_);
    exclude({fixed});
  }
}

void cases::refute_items(choice& branches, const value& schema) {
  if (const auto n = count_of(schema, "minItems", *doc_); n && *n > 0)
    branches.push_back([n = *n](pending& p) {
      only(p.so_far, type_array);
      at_most(p.so_far.array.max, n - 1);
    });
  if (const auto n = count_of(schema, "maxItems", *doc_))
    branches.push_back([n = *n](pending& p) {
      only(p.so_far, type_array);
      at_least(p.so_far.array.min, n + 1);
    });
  const auto shape = items_of(schema, *doc_);
  for (std::size_t i = 0; i < shape.prefix.size(); ++i) {
    if (always_holds(*shape.prefix[i])) continue;
    branches.push_back([i, item = shape.prefix[i]](pending& p) {
      only(p.so_far, type_array);
      const auto at = static_cast<std::int64_t>(i);
      at_least(p.so_far.array.min, at + 1);
      p.so_far.array.items[at] = with(p.so_far.array.items[at], {item, false});
    });
  }
  if (shape.rest != nullptr && !always_holds(*shape.rest)) {
    if (!shape.prefix.empty())
      refuse_keyword(errc::unsupported, *doc_, schema, "items",
                     "is not enforced inside `not` after a prefix");
    branches.push_back([rest = shape.rest](pending& p) {
      only(p.so_far, type_array);
      p.so_far.array.contains.push_back({{rest, false}, 1});
    });
  }
  if (const auto* wanted = member(schema, "contains")) {
    if (count_of(schema, "minContains", *doc_).value_or(1) != 1)
      refuse_keyword(errc::unsupported, *doc_, schema, "minContains",
                     "is not enforced inside `not`");
    branches.push_back([wanted](pending& p) {
      only(p.so_far, type_array);
      p.so_far.array.parts.push_back({{}, literal{wanted, false}});
    });
  }
  if (const auto* unique = member(schema, "uniqueItems");
      unique && unique->as_bool() && *unique->as_bool())
    refuse_keyword(errc::unsupported, *doc_, schema, "uniqueItems",
                   "is not enforced inside `not` or `oneOf`");
}

void cases::refute_members(choice& branches, const value& schema) {
  if (const auto n = count_of(schema, "minProperties", *doc_); n && *n > 0)
    branches.push_back([n = *n](pending& p) {
      only(p.so_far, type_object);
      at_most(p.so_far.object.max, n - 1);
    });
  if (const auto n = count_of(schema, "maxProperties", *doc_))
    branches.push_back([n = *n](pending& p) {
      only(p.so_far, type_object);
      at_least(p.so_far.object.min, n + 1);
    });
  for (const auto& name : names_of(schema, "required", *doc_))
    branches.push_back([name](pending& p) {
      only(p.so_far, type_object);
      p.so_far.object.forbidden.insert(name);
    });
  if (const auto* properties = member(schema, "properties"); properties && properties->as_object())
    for (const auto& [name, part] : *properties->as_object()) {
      if (always_holds(part)) continue;
      branches.push_back([name = name, &part = part](pending& p) {
        only(p.so_far, type_object);
        p.so_far.object.required.insert(name);
        p.so_far.object.members[name] = with(p.so_far.object.members[name], {&part, false});
      });
    }
  // No rule can express that some other property exists or has a value of some kind.
  const auto unsupported = [&](const char* keyword) {
    branches.push_back([this, &schema, keyword](pending& p) {
      only(p.so_far, type_object);
      if (p.so_far.types != 0)
        refuse_keyword(
            errc::unsupported, *doc_, schema, keyword,
            "is not enforced where it must not hold (inside `not`, or in a `oneOf` whose "
            "branches overlap)");
    });
  };
  for (const auto* keyword : {"additionalProperties", "propertyNames", "unevaluatedProperties"})
    if (const auto* part = member(schema, keyword); part != nullptr && !always_holds(*part))
      unsupported(keyword);
  if (const auto* part = member(schema, "patternProperties"); part && part->as_object())
    if (!std::all_of(part->as_object()->begin(), part->as_object()->end(),
                     [](const auto& entry) { return always_holds(entry.second); }))
      unsupported("patternProperties");
  for (const auto* keyword : {"dependencies", "dependentRequired", "dependentSchemas"}) {
    const auto* dependent = member(schema, keyword);
    if (dependent == nullptr || dependent->as_object() == nullptr) continue;
    for (const auto& [name, needs] : *dependent->as_object()) {
      if (const auto* list = needs.as_list()) {
        for (const auto& other : *list)
          if (other.as_string() != nullptr)
            branches.push_back([name = name, missing = *other.as_string()](pending& p) {
              only(p.so_far, type_object);
              p.so_far.object.required.insert(name);
              p.so_far.object.forbidden.insert(missing);
            });
      } else {
        branches.push_back([name = name, &needs = needs](pending& p) {
          only(p.so_far, type_object);
          p.so_far.object.required.insert(name);
          p.todo.push_back({{&needs, false}, 0});
        });
      }
    }
  }
}

void cases::refute_combined(choice& branches, const value& schema, int depth) {
  for (const auto* part : schemas_of(schema, "allOf", *doc_))
    branches.push_back([part, depth](pending& p) { p.todo.push_back({{part, false}, depth + 1}); });
  const auto none_of = [&](const std::vector<const value*>& parts) {
    branches.push_back([parts, depth](pending& p) {
      for (const auto* part : parts)
        p.todo.push_back({{part, false}, depth + 1});
    });
  };
  if (const auto parts = schemas_of(schema, "anyOf", *doc_); !parts.empty()) none_of(parts);
  if (const auto parts = schemas_of(schema, "oneOf", *doc_); !parts.empty()) {
    none_of(parts);
    for (std::size_t i = 0; i < parts.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) {
        if (disjoint(*parts[i], *parts[j])) continue;
        branches.push_back([a = parts[i], b = parts[j], depth](pending& p) {
          p.todo.push_back({{a, true}, depth + 1});
          p.todo.push_back({{b, true}, depth + 1});
        });
      }
  }
  if (const auto* refused = member(schema, "not"))
    branches.push_back([refused, depth](pending& p) {
      p.todo.push_back({{refused, true}, depth + 1});
    });
  if (const auto* condition = member(schema, "if"); condition != nullptr && has_if(*doc_))
    for (const bool holds : {true, false})
      if (const auto* follows = member(schema, holds ? "then" : "else"))
        branches.push_back([condition, follows, holds, depth](pending& p) {
          p.todo.push_back({{condition, holds}, depth + 1});
          p.todo.push_back({{follows, false}, depth + 1});
        });
}

} // namespace twill::models::grammar
