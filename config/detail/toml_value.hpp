// Reading of one TOML value for one key. The only header of config/ that shows toml++.
#pragma once

#include <optional>
#include <string>

#include <toml++/toml.h>

#include "config/detail/keys.hpp"

namespace twill::config::detail {

struct read_outcome {
  std::optional<key_value> value; ///< of the right type and obeying the key's rule
  std::string problem;            ///< otherwise: "must be ..., got ..."
};

read_outcome read_value(const key& k, const toml::node& node);

/// A value as a message shows it: short, one line.
std::string show(const toml::node& node);

} // namespace twill::config::detail
