// Loads options from the defaults, then from TOML files, then from settings of the command line,
// and validates them. Also writes options as commented TOML.
//
// Every key is one row of config/detail/keys.cpp, which loading, printing and config/reference.md
// all use. The functions have no side effect except reading files, and any thread may call them. A
// failure is a value. Its detail has one line for each error found, of the form "FILE:LINE:COL:
// `key` must be RULE, got VALUE"; errors of a setting begin with its command line option instead.
#pragma once

#include <string>
#include <vector>

#include "config/base/read_file.hpp"
#include "config/base/result.hpp"
#include "config/options.hpp"

namespace twill::config {

enum class load_errc {
  file_unreadable, ///< the file cannot be read, or is too large for a configuration
  bad_syntax,      ///< not TOML
  bad_keys,        ///< unknown keys, wrong types or impossible values
};

/// One `key=value` of the command line.
struct setting {
  std::string origin;   ///< what the user typed: "--set", "--listen"
  std::string key;      ///< "server.listen"
  std::string value;    ///< a TOML value; a bare word counts as a string
  bool literal = false; ///< use `value` as a string without parsing it as TOML
};

/// Splits "key=value" as given to --set; the value may hold further '='.
result<setting, load_errc> parse_setting(const std::string& text);

/// Loads `file` and then the settings of the command line; later settings override earlier ones. An
/// empty `file` reads no file.
result<options, load_errc> load(const std::string& file, const std::vector<setting>& settings = {});

/// One text of TOML.
struct source {
  std::string file; ///< what errors call it
  std::string text;
};

/// Loads the sources in their order and then the settings of the command line; a later value of a
/// key overrides an earlier one.
result<options, load_errc> load_sources(const std::vector<source>& sources,
                                        const std::vector<setting>& settings = {});

/// Expands `paths` to files: a folder stands for its files that end in ".toml", in the order of
/// their names, and any other path for itself. An empty path stands for nothing.
result<std::vector<std::string>, load_errc> list_files(const std::vector<std::string>& paths);

/// Loads the files of list_files(paths) and then the settings of the command line. `read` reads one
/// file; if it is empty, this process reads the files itself.
result<options, load_errc> load_files(const std::vector<std::string>& paths,
                                      const std::vector<setting>& settings = {},
                                      const file_reader& read = {});

/// `text` is what a file holds; `file` names it in errors.
result<options, load_errc> load_text(const std::string& text, const std::string& file,
                                     const std::vector<setting>& settings = {});

/// The options as TOML that loads to the same options. Each key stands under its description, and
/// its default is marked.
std::string print_config(const options& effective);

/// Every key with type, unit, default, rule and meaning, as a Markdown page.
std::string print_reference();

/// The keys ("log.level") whose values differ, in the order of the reference.
std::vector<std::string> changed_keys(const options& before, const options& after);

} // namespace twill::config
