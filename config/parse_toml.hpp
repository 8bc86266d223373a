// parse_toml: parses TOML text into toml++'s tree. All configuration files and command line
// settings are parsed by this function. Any thread may call it.
//
// Beyond TOML's rules, the depth of keys and nested values is bounded, so that walking and
// destroying the tree takes little stack. Throws toml::parse_error with the position of the error.
#pragma once

#include <string_view>

#include <toml++/toml.h>

namespace twill::config {

/// `file` is the name of the text in errors.
toml::table parse_toml(std::string_view text, std::string_view file = {});

} // namespace twill::config
