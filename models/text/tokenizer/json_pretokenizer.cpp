#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/text/tokenizer/char_bpe.hpp"
#include "models/text/tokenizer/json_parts.hpp"

namespace twill::models::json {
namespace {

std::optional<match_behavior> behavior_of(const value& component) {
  const std::string name = text(component, "behavior");
  if (name == "Removed") return match_behavior::removed;
  if (name == "Isolated" || name.empty()) return match_behavior::isolated;
  if (name == "Contiguous") return match_behavior::contiguous;
  if (name == "MergedWithPrevious") return match_behavior::merged_with_previous;
  if (name == "MergedWithNext") return match_behavior::merged_with_next;
  return std::nullopt;
}

/// Returns an expression that matches only the text `what`.
std::string quoted_pattern(std::string_view what) {
  std::string out;
  for (const char c : what) {
    if (static_cast<unsigned char>(c) < 0x80 &&
        std::string_view("\\^$.[]|()?*+{}-#").find(c) != std::string_view::npos)
      out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

result<nothing> add_compiled(result<std::shared_ptr<const regex>> compiled, match_behavior behavior,
                             bool invert, std::vector<split_rule>& rules) {
  if (!compiled.ok()) return compiled.error();
  rules.push_back(split_by(std::move(compiled).value(), behavior, invert));
  return nothing{};
}

result<nothing> add_split(const std::string& expression, match_behavior behavior, bool invert,
                          std::vector<split_rule>& rules) {
  return add_compiled(regex::make(expression), behavior, invert, rules);
}

result<nothing> add_pattern_split(const value& component, std::vector<split_rule>& rules) {
  const value* pattern = component.find("pattern");
  const auto behavior = behavior_of(component);
  if (pattern == nullptr || !behavior)
    return malformed("Split, must have a pattern and a known behavior");
  const bool invert = flag(component, "invert", false);
  if (const value* expression = pattern->find("Regex"); expression && expression->as_string()) {
    const auto linear = linear_steps(*expression->as_string());
    if (!linear || *behavior != match_behavior::isolated || invert)
      return add_compiled(regex::make_oniguruma(*expression->as_string()), *behavior, invert,
                          rules);
    auto steps = pretokenizer::from_steps(*linear);
    if (!steps.ok()) return steps.error();
    rules.push_back([steps = std::move(steps).value()](word_list& list, bool at_start) {
      return steps.split_words(list, at_start);
    });
    return nothing{};
  }
  const std::string plain = text(*pattern, "String");
  if (plain.empty()) return malformed("Split, its pattern must hold a Regex or a String");
  return add_split(quoted_pattern(plain), *behavior, invert, rules);
}

result<nothing> add_metaspace(const value& component, std::vector<split_rule>& rules) {
  const std::string scheme = text(component, "prepend_scheme");
  auto prefix = flag(component, "add_prefix_space", true) ? metaspace_prefix::always
                                                          : metaspace_prefix::never;
  if (scheme == "always") prefix = metaspace_prefix::always;
  if (scheme == "first") prefix = metaspace_prefix::first;
  if (scheme == "never") prefix = metaspace_prefix::never;
  std::string mark = text(component, "replacement");
  if (mark.empty()) mark = space_mark;
  if (mark.size() > 4) return malformed("Metaspace, its replacement must be one character");
  rules.push_back(metaspace(std::move(mark), prefix, flag(component, "split", true)));
  return nothing{};
}

/// Adds a kind of pre-tokenizer that is one fixed expression.
result<nothing> add_fixed(const value& component, std::vector<split_rule>& rules) {
  constexpr const char* punctuation = R"([!-/:-@\[-`{-~\p{P}])";
  const std::string_view type = type_of(component);
  if (type == "Digits")
    return add_split(flag(component, "individual_digits", false) ? R"(\p{N})" : R"(\p{N}+)",
                     match_behavior::isolated, false, rules);
  if (type == "Whitespace")
    return add_split(R"(\w+|[^\w\s]+)", match_behavior::removed, true, rules);
  if (type == "WhitespaceSplit") return add_split(R"(\s)", match_behavior::removed, false, rules);
  if (type == "CharDelimiterSplit") {
    const std::string delimiter = text(component, "delimiter");
    if (delimiter.empty()) return malformed("CharDelimiterSplit, must have a delimiter");
    return add_split(quoted_pattern(delimiter), match_behavior::removed, false, rules);
  }
  if (type == "Punctuation") {
    const auto behavior = behavior_of(component);
    if (!behavior) return malformed("Punctuation, must have a known behavior");
    return add_split(punctuation, *behavior, false, rules);
  }
  return unknown("pre_tokenizer", component);
}

result<nothing> add_pretokenizer(const value& component, int depth, bool& byte_level,
                                 std::vector<split_rule>& rules) {
  const std::string_view type = type_of(component);
  // The pre-tokenizer ByteLevel spells words in its own alphabet, which only the word model can
  // read, so no other pre-tokenizer may follow it.
  if (byte_level)
    return failure{errc::unsupported, "`pre_tokenizer`, ByteLevel must be the last, given \"" +
                                          std::string(type.substr(0, 80)) + "\" behind it"};
  if (type == "Sequence" && depth < max_sequence_depth) {
    const value* list = component.find("pretokenizers");
    if (list == nullptr || list->as_list() == nullptr)
      return malformed("Sequence, must have a list of pretokenizers");
    for (const value& entry : *list->as_list())
      if (auto added = add_pretokenizer(entry, depth + 1, byte_level, rules); !added.ok())
        return added;
    return nothing{};
  }
  if (type == "Split") return add_pattern_split(component, rules);
  if (type == "Metaspace") return add_metaspace(component, rules);
  if (type != "ByteLevel") return add_fixed(component, rules);
  byte_level = true;
  if (flag(component, "add_prefix_space", true)) rules.push_back(space_in_front());
  if (!flag(component, "use_regex", true)) return nothing{};
  return add_split(gpt2_expression, match_behavior::isolated, false, rules);
}

} // namespace

result<pretokenizer_part> read_pretokenizer(const value* section) {
  pretokenizer_part part;
  if (is_absent(section)) return part;
  std::vector<split_rule> rules;
  if (auto added = add_pretokenizer(*section, 0, part.byte_level, rules); !added.ok())
    return added.error();
  part.words_of = pretokenizer(std::move(rules));
  return part;
}

} // namespace twill::models::json
