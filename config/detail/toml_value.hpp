// Reads one TOML value for one key. No other header of config/ shows toml++.
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

/// The value as an error message shows it: short, and on one line.
std::string show(const toml::node& node);

} // namespace twill::config::detail
