#include "config/parse_toml.hpp"

#include <memory>
#include <string>

#include "config/detail/toml_depth.hpp"

namespace twill::config {

toml::table parse_toml(std::string_view text, std::string_view file) {
  if (const auto deep = detail::find_deep_place(text)) {
    const toml::source_position place{static_cast<toml::source_index>(deep->line),
                                      static_cast<toml::source_index>(deep->column)};
    throw toml::parse_error(deep->problem.c_str(), place,
                            std::make_shared<const std::string>(file));
  }
  return toml::parse(text, file);
}

} // namespace twill::config
