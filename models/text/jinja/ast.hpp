// ast: the parsed template. Immutable after parsing and shared by every render.
//
// One node type for expressions and one for statements, distinguished by `kind`. The comment of
// each kind says which members it uses. The parser limits the height of the tree and thereby the
// depth of every recursion over it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/text/jinja/value.hpp"

namespace twill::models::jinja {

struct expr;
struct stmt;
using expr_ptr = std::unique_ptr<expr>;
using stmt_ptr = std::unique_ptr<stmt>;
using body = std::vector<stmt_ptr>;

enum class expr_kind {
  constant,    ///< constant
  name,        ///< name
  list,        ///< items
  tuple,       ///< items
  dict,        ///< items: key, value, key, value ...
  attribute,   ///< items[0] . name
  subscript,   ///< items[0] [ items[1] ]
  slice,       ///< items[0] [ items[1] : items[2] : items[3] ], each bound may be null
  call,        ///< items[0] ( items[1..], named )
  filter,      ///< items[0] | name ( items[1..], named ); items[0] null inside a block filter
  test,        ///< items[0] is name ( items[1..], named )
  conditional, ///< items[0] if items[1] else items[2]; items[2] may be null
  logical_and, ///< items[0], items[1]
  logical_or,
  logical_not, ///< items[0]
  negative,    ///< items[0]
  positive,
  binary,  ///< items[0] name items[1]; name is the operator
  concat,  ///< items joined as text
  compare, ///< items[0] ops[0] items[1] ops[1] items[2] ...
};

struct expr {
  expr_kind kind;
  int line;
  int height = 1;
  std::string name;
  val constant; ///< scalars and strings only
  std::vector<expr_ptr> items;
  std::vector<std::pair<std::string, expr_ptr>> named;
  std::vector<std::string> ops;
};

enum class stmt_kind {
  data,         ///< text
  print,        ///< value
  branch,       ///< tests[i] chooses bodies[i]; one more body is the else
  loop,         ///< target in value, if tests[0]; bodies[0], else bodies[1]; flag: recursive
  assign,       ///< target = value
  assign_block, ///< target = bodies[0] through the filter chain in value (may be null)
  filter_block, ///< bodies[0] through the filter chain in value
  with,         ///< parameters[i].name = parameters[i].value, then bodies[0]
  scoped,       ///< bodies[0] in a new scope
  macro,        ///< name, parameters, bodies[0]
  call_block,   ///< value is a call; parameters, bodies[0]: its caller
  leave_loop,
  continue_loop,
};

struct parameter {
  std::string name;
  expr_ptr value; ///< the default; null when there is none
};

/// The left side of an assignment: a name, an attribute of a namespace, or a tuple of targets.
struct target {
  std::string name;
  std::string attribute; ///< when not empty, `name` must be a namespace
  bool is_tuple = false;
  std::vector<target> items;
};

struct stmt {
  stmt_kind kind;
  int line;
  std::shared_ptr<const text> data;
  std::string name;
  expr_ptr value;
  target to;
  std::vector<expr_ptr> tests;
  std::vector<body> bodies;
  std::vector<parameter> parameters;
  bool flag = false;
  /// the macro's body uses the name varargs, kwargs or caller
  bool takes_varargs = false, takes_kwargs = false, takes_caller = false;
  bool keeps_scope = false; ///< a macro inside may outlive one round of the loop
};

} // namespace twill::models::jinja
