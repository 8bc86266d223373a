// model_tables: collects the tables `[models.NAME]` of all sources in order of appearance, and
// checks the rules that involve several of them.
//
// Only one thread at a time may use an object. Errors are passed to the complaint_taker callback;
// correct values are kept even if others are wrong.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/detail/load_words.hpp"
#include "config/detail/model_keys.hpp"
#include "config/load.hpp"
#include "config/options.hpp"

namespace twill::config::detail {

inline constexpr std::string_view models_table = "models";

class model_tables {
public:
  explicit model_tables(complaint_taker complain) : complain_(std::move(complain)) {}

  /// Adds the TOML table `models` of one file, which holds the tables [models.NAME]. Values of a
  /// later file override those of an earlier one, as for any table.
  void add(const toml::node& node, const std::string& file);
  /// Adds a command line setting with key "models.NAME.KEY". NAME may contain dots.
  void add_setting(const setting& given);
  /// Checks that each model has a path and a unique name.
  void check();

  const std::vector<shared_model_options>& all() const { return all_; }
  /// Where the value of a member of all()[index] came from, or where its table begins.
  const std::string& origin_of(std::size_t index, std::string_view member) const;

private:
  using origins = std::map<std::string_view, std::string>;

  std::optional<std::size_t> place_of(std::string_view table, const std::string& origin);
  const model_key* key_named(std::string_view member, const std::string& origin);
  void store(std::size_t index, const model_key& k, const toml::node& node,
             const std::string& origin);
  void add_members(std::size_t index, const toml::table& members, const std::string& file,
                   const std::string& inside);

  complaint_taker complain_;
  std::vector<shared_model_options> all_;
  /// For each model: member -> origin of its value; "models" -> where its table begins.
  std::vector<origins> origins_;
};

} // namespace twill::config::detail
