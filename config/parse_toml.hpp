// parse_toml: TOML text to toml++'s tree, the one way for every file and setting of twill. Any
// thread may call.
//
// Beyond TOML's rules, keys and nested values have a bounded depth, so that walking and destroying
// the tree takes little stack. Throws toml::parse_error, which has the place.
#pragma once

#include <string_view>

#include <toml++/toml.h>

namespace twill::config {

/// `file` is what errors call the text.
toml::table parse_toml(std::string_view text, std::string_view file = {});

} // namespace twill::config
