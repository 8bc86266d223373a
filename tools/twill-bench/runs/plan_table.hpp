// plan_table: reads a TOML table of a plan file (plan.hpp) key by key.
//
// Every error throws std::runtime_error, which names the line and the key. finish() throws for a
// key that was not read.
#pragma once

#include <toml++/toml.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tools/twill-bench/engine/options.hpp"

namespace twill::bench {

/// A table whose keys are each read by name; keys that were not read are errors.
class plan_table {
public:
  plan_table(const toml::table& table, std::string where)
      : table_(table), where_(std::move(where)) {}

  [[noreturn]] void fail(const std::string& key, const std::string& rule) const {
    const toml::node* node = table_.get(key);
    const auto line = (node != nullptr ? node->source() : table_.source()).begin.line;
    throw std::runtime_error(where_ + ":" + std::to_string(line) + ": " + key + " " + rule);
  }

  template <class Value>
  std::optional<Value> get(const std::string& key) {
    known_.insert(key);
    const toml::node* node = table_.get(key);
    if (node == nullptr) return std::nullopt;
    if (auto value = node->value<Value>()) return value;
    fail(key, "has the wrong type");
  }

  template <class Value, class Target>
  void read(const std::string& key, Target& into) {
    if (const auto value = get<Value>(key)) into = static_cast<Target>(*value);
  }

  /// Reads a whole number of at least `least`.
  template <class Target>
  void count(const std::string& key, Target& into, std::int64_t least) {
    const auto value = get<std::int64_t>(key);
    if (!value) return;
    if (*value < least)
      fail(key, "must be >= " + std::to_string(least) + ", got " + std::to_string(*value));
    into = static_cast<Target>(*value);
  }

  void seconds(const std::string& key, std::chrono::duration<double>& into) {
    const auto value = get<double>(key);
    if (value && *value <= 0) fail(key, "must be > 0");
    if (value) into = std::chrono::duration<double>(*value);
  }

  std::string required(const std::string& key) {
    auto value = get<std::string>(key);
    if (!value || value->empty()) fail(key, "must be given");
    return *value;
  }

  void pairs(const std::string& key, std::vector<name_value>& into) {
    known_.insert(key);
    const toml::node* node = table_.get(key);
    if (node == nullptr) return;
    if (!node->is_table()) fail(key, "must be a table of names and texts");
    for (const auto& entry : *node->as_table()) {
      const auto value = entry.second.value<std::string>();
      if (!value) fail(key, "must be a table of names and texts");
      into.emplace_back(std::string(entry.first), *value);
    }
  }

  /// A list of words, or a single string with a shell command.
  std::vector<std::string> command(const std::string& key) {
    known_.insert(key);
    const toml::node* node = table_.get(key);
    if (node == nullptr) fail(key, "must be given");
    if (const auto text = node->value<std::string>()) return {"/bin/sh", "-c", *text};
    std::vector<std::string> out;
    if (const auto* list = node->as_array())
      for (const auto& each : *list)
        if (const auto word = each.value<std::string>()) out.push_back(*word);
    if (out.empty()) fail(key, "must be a list of words or a text for the shell");
    return out;
  }

  /// Reads a list of whole numbers of at least 1.
  void lengths(const std::string& key, std::vector<std::int32_t>& into) {
    known_.insert(key);
    const toml::node* node = table_.get(key);
    if (node == nullptr) return;
    into.clear();
    if (const auto* list = node->as_array())
      for (const auto& each : *list)
        if (const auto value = each.value<std::int32_t>(); value && *value >= 1)
          into.push_back(*value);
    if (into.empty() || into.size() != node->as_array()->size())
      fail(key, "must be a list of whole numbers >= 1");
  }

  /// Reads a list of strings.
  void texts(const std::string& key, std::vector<std::string>& into) {
    known_.insert(key);
    const toml::node* node = table_.get(key);
    if (node == nullptr) return;
    const auto* list = node->as_array();
    if (list == nullptr) fail(key, "must be a list of texts");
    for (const auto& each : *list) {
      const auto value = each.value<std::string>();
      if (!value) fail(key, "must be a list of texts");
      into.push_back(*value);
    }
  }

  std::vector<plan_table> tables(const std::string& key) {
    known_.insert(key);
    std::vector<plan_table> out;
    const toml::node* node = table_.get(key);
    if (node == nullptr) return out;
    const auto* list = node->as_array();
    if (list == nullptr) fail(key, "must be written [[" + key + "]]");
    for (const auto& each : *list) {
      if (!each.is_table()) fail(key, "must be written [[" + key + "]]");
      out.emplace_back(*each.as_table(), where_);
    }
    return out;
  }

  void finish() const {
    for (const auto& entry : table_)
      if (known_.count(std::string(entry.first)) == 0)
        fail(std::string(entry.first), "is not a known key");
  }

private:
  const toml::table& table_;
  std::string where_;
  std::set<std::string> known_;
};

} // namespace twill::bench
