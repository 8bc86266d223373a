// Loading of options: defaults, then one TOML file, then settings of the command line; validation;
// and the same options written back as commented TOML.
//
// Every key is one row of config/detail/keys.cpp; loading, printing and the reference follow from
// it. Pure but for reading the file; any thread may call. Failures are values: the detail has one
// line per error, "FILE:LINE:COL: `key` must be RULE, got VALUE" (or "--set: ..."), and all errors
// are collected before the load fails.
#pragma once

#include <string>
#include <vector>

#include "config/base/result.hpp"
#include "config/options.hpp"

namespace twill::config {

enum class load_errc {
  file_unreadable, ///< the file cannot be read, or is larger than any configuration
  bad_syntax,      ///< not TOML
  bad_keys,        ///< unknown keys, wrong types or impossible values: one line each
};

/// One `key=value` of the command line.
struct setting {
  std::string origin;   ///< what the user typed: "--set", "--listen"
  std::string key;      ///< "server.listen"
  std::string value;    ///< a TOML value; a bare word counts as a string
  bool literal = false; ///< take `value` as a string as it stands
};

/// Splits "key=value" as given to --set; the value may hold further '='.
result<setting, load_errc> parse_setting(const std::string& text);

/// `file` may be empty: defaults and settings only. Later settings win over earlier ones.
result<options, load_errc> load(const std::string& file, const std::vector<setting>& settings = {});

/// `text` is what a file holds; `file` names it in errors.
result<options, load_errc> load_text(const std::string& text, const std::string& file,
                                     const std::vector<setting>& settings = {});

/// The options as TOML that loads to the same options: each key under its doc line, defaults
/// marked.
std::string print_config(const options& effective);

/// Every key with type, unit, default, rule and meaning, as a Markdown page.
std::string print_reference();

/// Keys whose values differ, in the order of the reference ("log.level", ...).
std::vector<std::string> changed_keys(const options& before, const options& after);

} // namespace twill::config
