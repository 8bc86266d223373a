#include "models/text/grammar/schema/cases.hpp"

#include <algorithm>
#include <utility>

#include "models/text/grammar/schema/boolean_operations.hpp"
#include "models/text/grammar/schema/formats.hpp"
#include "models/text/grammar/schema/utf8.hpp"

namespace twill::models::grammar {
namespace {

constexpr int max_references = 100;
constexpr std::size_t max_cases = 600;
constexpr int max_emptiness_depth = 6;
const value nothing_valid(false);

unsigned bits_of(const std::string& type) {
  if (type == "null") return type_null;
  if (type == "boolean") return type_true | type_false;
  if (type == "number" || type == "integer") return type_number;
  if (type == "string") return type_string;
  if (type == "array") return type_array;
  return type_object;
}

void add_literal(node& n, literal l) {
  const auto at = std::lower_bound(n.begin(), n.end(), l);
  if (at == n.end() || *at != l) n.insert(at, l);
}

/// True if every value satisfies the schema, as far as a look at the schema itself shows.
bool is_trivial(const value& schema) {
  if (const auto* always = schema.as_bool()) return *always;
  return schema.as_object() != nullptr && schema.as_object()->empty();
}

} // namespace

node node_of(std::vector<literal> literals) {
  node out;
  for (const auto& l : literals)
    if (!(l.holds && is_trivial(*l.schema))) add_literal(out, l);
  return out;
}

const std::vector<schema_case>& cases::of(const node& n) {
  const auto found = known_.find(n);
  if (found != known_.end()) return found->second;
  std::vector<schema_case> out;
  pending start;
  for (const auto& l : n)
    start.todo.push_back({l, 0});
  std::reverse(start.todo.begin(), start.todo.end());
  const auto* outer = std::exchange(current_, &n);
  try {
    run(std::move(start), n, out);
  } catch (...) {
    current_ = outer;
    throw;
  }
  current_ = outer;
  return known_.emplace(n, std::move(out)).first->second;
}

/// Marks the schema rules that were just added to `at` as coming from inside `not`. Values must
/// still satisfy these rules, but unevaluatedProperties does not count the properties in them as
/// evaluated. The numbers say how many entries were there before: `n_todo` in `at.todo` (schemas to
/// apply), `n_choices` in `at.choices` (alternatives to try), and `n_parts` in
/// `at.so_far.object.parts` (rules of objects).
void cases::suppress_annotations(pending& at, std::size_t n_todo, std::size_t n_choices,
                                 std::size_t n_parts) {
  for (auto i = n_todo; i < at.todo.size(); ++i)
    at.todo[i].annotates = false;
  for (auto i = n_parts; i < at.so_far.object.parts.size(); ++i)
    at.so_far.object.parts[i].annotates = false;
  for (auto i = n_choices; i < at.choices.size(); ++i)
    for (auto& take : at.choices[i])
      take = [inner = std::move(take)](pending& p) {
        const auto before = p.todo.size();
        inner(p);
        suppress_annotations(p, before, p.choices.size(), p.so_far.object.parts.size());
      };
}

void cases::run(pending at, const node& whole, std::vector<schema_case>& out) {
  while (!at.todo.empty()) {
    const auto [l, depth, annotates] = at.todo.back();
    at.todo.pop_back();
    const auto n_todo = at.todo.size(), n_choices = at.choices.size(),
               n_parts = at.so_far.object.parts.size();
    if (l.holds)
      apply(at, *l.schema, depth);
    else
      apply_not(at, *l.schema, depth);
    if (!annotates || !l.holds) suppress_annotations(at, n_todo, n_choices, n_parts);
    if (at.so_far.types == 0) return;
  }
  if (!at.choices.empty()) {
    const choice next = std::move(at.choices.front());
    at.choices.erase(at.choices.begin());
    for (const auto& take : next) {
      pending copy = at;
      take(copy);
      if (copy.so_far.types != 0) run(std::move(copy), whole, out);
    }
    return;
  }
  auto& c = at.so_far;
  if (c.values) {
    std::erase_if(*c.values, [&](const value* v) {
      return !std::all_of(whole.begin(), whole.end(),
                          [&](const literal& l) { return check_.valid(*l.schema, *v) == l.holds; });
    });
    if (c.values->empty()) return;
    // An earlier case may allow the same values.
    for (const auto& other : out)
      if (other.values == c.values) return;
  } else if (is_empty_case(c)) {
    return;
  }
  if (out.size() >= max_cases)
    refuse(errc::too_large, "the schema at " + doc_->pointer_to(*whole.front().schema) +
                                " combines more than " + std::to_string(max_cases) +
                                " alternatives");
  out.push_back(std::move(c));
}

void cases::apply(pending& at, const value& schema, int depth) {
  auto& c = at.so_far;
  if (const auto* always = schema.as_bool()) {
    if (!*always) c.types = 0;
    return;
  }
  if (schema.as_object() == nullptr)
    refuse(errc::bad_schema,
           doc_->pointer_to(schema) + ": a schema must be an object, true or false");
  if (depth > max_references)
    refuse_keyword(errc::bad_schema, *doc_, schema, "$ref", "leads to itself");
  if (const auto ref = string_of(schema, "$ref", *doc_)) {
    at.todo.push_back({{&doc_->resolve(schema, *ref), true}, depth + 1});
    if (doc_->ignores_beside_ref()) return;
  }
  check_known(schema, *doc_);
  apply_types(c, schema);
  if (const auto* fixed = member(schema, "const")) {
    check_exact(*fixed, schema, "const", *doc_);
    if (!c.values) c.values.emplace({fixed});
  }
  if (const auto* listed = member(schema, "enum")) {
    if (listed->as_list() == nullptr)
      refuse_keyword(errc::bad_schema, *doc_, schema, "enum", "must be a list");
    check_exact(*listed, schema, "enum", *doc_);
    if (!c.values) {
      c.values.emplace();
      for (const auto& v : *listed->as_list())
        c.values->push_back(&v);
    }
  }
  const auto numbers = number_rules_of(schema, *doc_);
  c.number.bounds.insert(c.number.bounds.end(), numbers.bounds.begin(), numbers.bounds.end());
  c.number.multiples.insert(c.number.multiples.end(), numbers.multiples.begin(),
                            numbers.multiples.end());
  apply_string(c, schema);
  apply_array(c, schema);
  apply_object(at, schema, depth);
  apply_combined(at, schema, depth);
}

void cases::apply_types(schema_case& c, const value& schema) {
  const auto* type = member(schema, "type");
  if (type == nullptr) return;
  unsigned bits = 0;
  bool number = false, integer = false;
  for (const auto& name : type_names(*type)) {
    bits |= bits_of(name);
    number |= name == "number";
    integer |= name == "integer";
  }
  only(c, bits);
  if (integer && !number) c.number.whole = true;
  if (c.number.whole && c.number.fraction) c.types &= ~static_cast<unsigned>(type_number);
}

void cases::apply_string(schema_case& c, const value& schema) {
  auto& s = c.string;
  if (const auto n = count_of(schema, "minLength", *doc_)) at_least(s.min, *n);
  if (const auto n = count_of(schema, "maxLength", *doc_)) at_most(s.max, *n);
  if (auto pattern = string_of(schema, "pattern", *doc_)) s.patterns.insert(*pattern);
  if (const auto* format = member(schema, "format");
      format != nullptr && format->as_string() != nullptr) {
    const auto& pattern = format_pattern(*format->as_string());
    if (!pattern.empty()) s.patterns.insert(pattern);
  }
}

void cases::apply_array(schema_case& c, const value& schema) {
  auto& a = c.array;
  if (const auto n = count_of(schema, "minItems", *doc_)) at_least(a.min, *n);
  if (const auto n = count_of(schema, "maxItems", *doc_)) at_most(a.max, *n);
  if (const auto* unique = member(schema, "uniqueItems");
      unique && unique->as_bool() && *unique->as_bool())
    a.unique = &schema;
  const auto shape = items_of(schema, *doc_);
  if (!shape.prefix.empty() || shape.rest != nullptr) {
    array_rules::part part;
    for (const auto* item : shape.prefix)
      part.prefix.push_back({item, true});
    if (shape.rest != nullptr) part.rest = literal{shape.rest, true};
    a.parts.push_back(std::move(part));
  }
  if (const auto* wanted = member(schema, "contains")) {
    const auto n = count_of(schema, "minContains", *doc_).value_or(1);
    if (n > 0) a.contains.push_back({{wanted, true}, n});
  }
}

void cases::apply_object(pending& at, const value& schema, int depth) {
  auto& o = at.so_far.object;
  if (const auto n = count_of(schema, "minProperties", *doc_)) at_least(o.min, *n);
  if (const auto n = count_of(schema, "maxProperties", *doc_)) at_most(o.max, *n);
  object_rules::part part{member(schema, "properties"), member(schema, "patternProperties"),
                          member(schema, "additionalProperties"),
                          names_of(schema, "required", *doc_), true};
  o.required.insert(part.required.begin(), part.required.end());
  for (const auto& [keyword, v] :
       {std::pair{"properties", part.properties}, std::pair{"patternProperties", part.by_pattern}})
    if (v != nullptr && v->as_object() == nullptr)
      refuse_keyword(errc::bad_schema, *doc_, schema, keyword, "must be an object of schemas");
  if (part.properties != nullptr || part.by_pattern != nullptr || part.others != nullptr ||
      !part.required.empty())
    o.parts.push_back(std::move(part));
  if (const auto* names = member(schema, "propertyNames")) o.names.push_back({names, true});
  if (const auto* rest = member(schema, "unevaluatedProperties");
      rest != nullptr && doc_->draft() >= 2019) {
    if (is_trivial(*rest)) return;
    if (rest->as_bool() == nullptr || !is_alone(*current_, schema))
      refuse_keyword(errc::unsupported, *doc_, schema, "unevaluatedProperties",
                     "is enforced only where it is false and no outer schema adds properties");
    o.no_others = true;
  }
  apply_dependencies(at, schema, depth);
}

bool cases::is_alone(const node& whole, const value& schema) const {
  return whole.size() == 1 && whole.front().holds && whole.front().schema == &schema;
}

void cases::apply_dependencies(pending& at, const value& schema, int depth) {
  for (const auto* keyword : {"dependencies", "dependentRequired", "dependentSchemas"}) {
    const auto* dependent = member(schema, keyword);
    if (dependent == nullptr) continue;
    if (dependent->as_object() == nullptr)
      refuse_keyword(errc::bad_schema, *doc_, schema, keyword, "must be an object");
    for (const auto& [name, needs] : *dependent->as_object()) {
      choice branches;
      branches.push_back([name = name](pending& p) { p.so_far.object.forbidden.insert(name); });
      branches.push_back([this, name = name, &needs = needs, &schema, keyword, depth](pending& p) {
        only(p.so_far, type_object);
        p.so_far.object.required.insert(name);
        if (const auto* list = needs.as_list()) {
          for (const auto& other : *list) {
            if (other.as_string() == nullptr)
              refuse_keyword(errc::bad_schema, *doc_, schema, keyword, "must list property names");
            p.so_far.object.required.insert(*other.as_string());
          }
        } else {
          p.todo.push_back({{&needs, true}, depth});
        }
      });
      at.choices.push_back(std::move(branches));
    }
  }
}

void cases::apply_combined(pending& at, const value& schema, int depth) {
  for (const auto* part : schemas_of(schema, "allOf", *doc_))
    at.todo.push_back({{part, true}, depth + 1});
  if (const auto parts = schemas_of(schema, "anyOf", *doc_); !parts.empty()) {
    choice branches;
    for (const auto* part : parts)
      branches.push_back([part, depth](pending& p) {
        p.todo.push_back({{part, true}, depth + 1});
      });
    at.choices.push_back(std::move(branches));
  }
  if (member(schema, "oneOf") != nullptr) apply_one_of(at, schema, depth);
  if (const auto* refused = member(schema, "not")) at.todo.push_back({{refused, false}, depth + 1});
  if (const auto* condition = member(schema, "if"); condition != nullptr && has_if(*doc_)) {
    choice branches;
    for (const bool holds : {true, false}) {
      const auto* follows = member(schema, holds ? "then" : "else");
      branches.push_back([condition, follows, holds, depth](pending& p) {
        p.todo.push_back({{condition, holds}, depth + 1});
        if (follows != nullptr) p.todo.push_back({{follows, true}, depth + 1});
      });
    }
    if (member(schema, "then") != nullptr || member(schema, "else") != nullptr)
      at.choices.push_back(std::move(branches));
  }
}

void cases::apply_one_of(pending& at, const value& schema, int depth) {
  const auto parts = schemas_of(schema, "oneOf", *doc_);
  choice branches;
  for (const auto* part : parts) {
    std::vector<const value*> overlapping;
    for (const auto* other : parts)
      if (other != part && !disjoint(*part, *other)) overlapping.push_back(other);
    branches.push_back([part, overlapping, depth](pending& p) {
      for (const auto* other : overlapping)
        p.todo.push_back({{other, false}, depth + 1});
      p.todo.push_back({{part, true}, depth + 1});
    });
  }
  at.choices.push_back(std::move(branches));
}

bool cases::disjoint(const value& a, const value& b) {
  return is_empty(node_of({{&a, true}, {&b, true}}));
}

bool cases::is_empty(const node& n) {
  if (n.empty()) return false;
  const auto found = empty_.find(n);
  if (found != empty_.end()) return found->second;
  if (emptiness_depth_ >= max_emptiness_depth) return false;
  ++emptiness_depth_;
  // While `n` is being examined, a recursive reference to it counts as not known to be empty.
  empty_[n] = false;
  bool out = false;
  bool certain = true;
  try {
    out = of(n).empty();
  } catch (const refusal&) {
    certain = false;
  }
  --emptiness_depth_;
  empty_.erase(n);
  if (certain) empty_[n] = out;
  return out;
}

bool cases::is_empty_case(const schema_case& given) {
  schema_case c = given;
  if ((c.types & type_number) != 0 && !c.number.trivial() && number_automaton(c.number).empty())
    c.types &= ~static_cast<unsigned>(type_number);
  if ((c.types & type_string) != 0) {
    bool empty = c.string.max >= 0 && c.string.min > c.string.max;
    if (!empty && c.string.patterns.size() + c.string.not_patterns.size() > 1) {
      try {
        automaton all = length_automaton(0, -1);
        for (const auto& pattern : c.string.patterns)
          all = intersection(all, patterns_->of(pattern));
        for (const auto& pattern : c.string.not_patterns)
          all = intersection(all, complement(patterns_->of(pattern)));
        empty = all.empty();
      } catch (const refusal&) {
        empty = false;
      }
    }
    if (empty) c.types &= ~static_cast<unsigned>(type_string);
  }
  if ((c.types & type_array) != 0) {
    auto least = c.array.min;
    for (const auto& wanted : c.array.contains)
      at_least(least, wanted.count);
    bool empty = c.array.max >= 0 && least > c.array.max;
    for (std::int64_t i = 0; i < std::min<std::int64_t>(c.array.min, 16) && !empty; ++i)
      empty = is_empty(item_node(c.array, i));
    for (const auto& wanted : c.array.contains)
      empty = empty || is_empty(node_of({wanted.item}));
    if (empty) c.types &= ~static_cast<unsigned>(type_array);
  }
  if ((c.types & type_object) != 0) {
    const auto& o = c.object;
    bool empty = o.max >= 0 && std::max<std::int64_t>(
                                   o.min, static_cast<std::int64_t>(o.required.size())) > o.max;
    for (const auto& name : o.required)
      empty = empty || o.forbidden.contains(name) || is_empty(member_node(o, name));
    if (empty) c.types &= ~static_cast<unsigned>(type_object);
  }
  return c.types == 0;
}

node cases::member_node(const object_rules& rules, const std::string& name) {
  std::vector<literal> literals;
  bool any_known = false;
  for (const auto& part : rules.parts) {
    bool known = false;
    if (part.properties != nullptr)
      if (const auto* schema = member(*part.properties, name)) {
        known = true;
        literals.push_back({schema, true});
      }
    if (part.by_pattern != nullptr)
      for (const auto& [pattern, schema] : *part.by_pattern->as_object())
        if (patterns_->found_in(pattern, name)) {
          known = true;
          literals.push_back({&schema, true});
        }
    if (!known && part.others != nullptr) literals.push_back({part.others, true});
    any_known |= part.annotates && (known || part.others != nullptr);
  }
  if (!any_known && rules.no_others) literals.push_back({&nothing_valid, true});
  if (const auto beside = rules.members.find(name); beside != rules.members.end())
    literals.insert(literals.end(), beside->second.begin(), beside->second.end());
  if (rules.forbidden.contains(name) || !may_be_named(rules, name))
    literals.push_back({&nothing_valid, true});
  return node_of(std::move(literals));
}

bool cases::may_be_named(const object_rules& rules, const std::string& name) {
  return std::all_of(rules.names.begin(), rules.names.end(), [&](const literal& l) {
    return check_.valid(*l.schema, value(name)) == l.holds;
  });
}

node cases::item_node(const array_rules& rules, std::int64_t i) {
  std::vector<literal> literals;
  for (const auto& part : rules.parts) {
    if (i < static_cast<std::int64_t>(part.prefix.size()))
      literals.push_back(part.prefix[static_cast<std::size_t>(i)]);
    else if (part.rest)
      literals.push_back(*part.rest);
  }
  if (const auto beside = rules.items.find(i); beside != rules.items.end())
    literals.insert(literals.end(), beside->second.begin(), beside->second.end());
  return node_of(std::move(literals));
}

} // namespace twill::models::grammar
