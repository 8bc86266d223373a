// Reads one TOML value for one key. Of the headers of config/, only this one, load_words.hpp,
// model_tables.hpp and parse_toml.hpp include toml++.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <toml++/toml.h>

#include "config/base/breach.hpp"
#include "config/detail/keys.hpp"

namespace twill::config::detail {

struct read_outcome {
  std::optional<key_value> value; ///< of the right type and obeying the key's rule
  breach problem;                 ///< set if there is no value
};

/// What decides how a value is read.
struct value_form {
  std::string_view name;
  key_kind kind = key_kind::text;
  const rule& possible;
  bool secret = false;
  bool single = false;
};
read_outcome read_value(const value_form& form, const toml::node& node);
template <class Owner>
read_outcome read_value(const basic_key<Owner>& k, const toml::node& node) {
  return read_value(value_form{k.name, kind_of(k), k.possible, k.secret, k.single}, node);
}

/// The value as an error message shows it: short, and on one line.
std::string show(const toml::node& node);

} // namespace twill::config::detail
