#include "models/text/tokenizer/json_parts.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "models/text/tokenizer/base64.hpp"

namespace twill::models::json {
namespace {

result<normalize_rule> read_replace(const value& component) {
  const value* pattern = component.find("pattern");
  if (pattern == nullptr) return malformed("Replace, must have a pattern");
  const std::string by = text(component, "content");
  if (pattern->find("String") != nullptr) return replace_text(text(*pattern, "String"), by);
  auto expression = regex::make_oniguruma(text(*pattern, "Regex"));
  if (!expression.ok()) return expression.error();
  return replace_matches(std::move(expression).value(), by);
}

result<normalize_rule> read_compiled(const value& component) {
  const auto rules = decode_base64(text(component, "precompiled_charsmap"));
  if (!rules) return malformed("Precompiled, must hold base64");
  return compiled_rules(*rules);
}

std::optional<normal_form> form_of(std::string_view type) {
  if (type == "NFC") return normal_form::nfc;
  if (type == "NFD") return normal_form::nfd;
  if (type == "NFKC") return normal_form::nfkc;
  if (type == "NFKD") return normal_form::nfkd;
  return std::nullopt;
}

result<nothing> add_normalizer(const value& component, int depth,
                               std::vector<normalize_rule>& rules) {
  const std::string_view type = type_of(component);
  if (type == "Sequence" && depth < max_sequence_depth) {
    const value* list = component.find("normalizers");
    if (list == nullptr || list->as_list() == nullptr)
      return malformed("Sequence, must have a list of normalizers");
    for (const value& entry : *list->as_list())
      if (auto added = add_normalizer(entry, depth + 1, rules); !added.ok()) return added;
    return nothing{};
  }
  if (const auto form = form_of(type)) {
    rules.push_back(to_normal_form(*form));
  } else if (type == "Lowercase") {
    rules.push_back(to_lowercase());
  } else if (type == "Strip") {
    rules.push_back(
        strip_space(flag(component, "strip_left", true), flag(component, "strip_right", true)));
  } else if (type == "StripAccents") {
    rules.push_back(strip_marks());
  } else if (type == "Nmt") {
    rules.push_back(nmt_rules());
  } else if (type == "Prepend") {
    rules.push_back(prepend(text(component, "prepend")));
  } else if (type == "Replace" || type == "Precompiled") {
    auto rule = type == "Replace" ? read_replace(component) : read_compiled(component);
    if (!rule.ok()) return rule.error();
    rules.push_back(std::move(rule).value());
  } else {
    return unknown("normalizer", component);
  }
  return nothing{};
}

token_id id_in(const value& list) {
  const std::int64_t* id = list.as_int();
  const bool fits = id != nullptr && *id >= 0 && *id <= std::numeric_limits<token_id>::max();
  return fits ? static_cast<token_id>(*id) : -1;
}

/// Reads TemplateProcessing: the ids that come before and after the text of a single sequence.
result<nothing> add_template(const value& component, frame_part& frame) {
  const value* single = component.find("single");
  const value* tokens = component.find("special_tokens");
  if (single == nullptr || single->as_list() == nullptr)
    return malformed("TemplateProcessing, must have a list `single`");
  bool before = true;
  for (const value& entry : *single->as_list()) {
    if (entry.find("Sequence") != nullptr) {
      before = false;
      continue;
    }
    const value* token = entry.find("SpecialToken");
    const value* known =
        token == nullptr || tokens == nullptr ? nullptr : tokens->find(text(*token, "id"));
    const value* ids = known == nullptr ? nullptr : known->find("ids");
    if (ids == nullptr || ids->as_list() == nullptr)
      return malformed("TemplateProcessing, a special token must have ids");
    for (const value& id : *ids->as_list())
      (before ? frame.prefix : frame.suffix).push_back(id_in(id));
  }
  return nothing{};
}

result<nothing> add_post_processor(const value& component, int depth, frame_part& frame) {
  const std::string_view type = type_of(component);
  if (type == "ByteLevel") return nothing{}; // it changes offsets only
  if (type == "TemplateProcessing") return add_template(component, frame);
  if (type == "RobertaProcessing" || type == "BertProcessing") {
    for (const char* name : {"cls", "sep"}) {
      const value* pair = component.find(name);
      if (pair == nullptr || pair->as_list() == nullptr || pair->as_list()->size() != 2)
        return malformed(std::string(type) + ", must have pairs `cls` and `sep`");
      (name[0] == 'c' ? frame.prefix : frame.suffix).push_back(id_in((*pair->as_list())[1]));
    }
    return nothing{};
  }
  const value* list = component.find("processors");
  if (type != "Sequence" || depth >= max_sequence_depth || list == nullptr ||
      list->as_list() == nullptr)
    return unknown("post_processor", component);
  for (const value& entry : *list->as_list())
    if (auto added = add_post_processor(entry, depth + 1, frame); !added.ok()) return added;
  return nothing{};
}

} // namespace

std::string_view type_of(const value& component) {
  const value* type = component.find("type");
  return type == nullptr || type->as_string() == nullptr ? std::string_view() : *type->as_string();
}

bool flag(const value& component, std::string_view name, bool otherwise) {
  const value* found = component.find(name);
  return found != nullptr && found->as_bool() != nullptr ? *found->as_bool() : otherwise;
}

std::string text(const value& component, std::string_view name) {
  const value* found = component.find(name);
  return found == nullptr || found->as_string() == nullptr ? std::string() : *found->as_string();
}

bool is_absent(const value* component) {
  return component == nullptr || component->is_null();
}

failure unknown(std::string_view section, const value& component) {
  return {errc::unsupported, "`" + std::string(section) + "`, twill does not know the type \"" +
                                 std::string(type_of(component).substr(0, 80)) + "\""};
}

failure malformed(std::string_view what) {
  return {errc::bad_format, std::string(what)};
}

result<normalizer> read_normalizer(const value* section) {
  if (is_absent(section)) return normalizer();
  std::vector<normalize_rule> rules;
  if (auto added = add_normalizer(*section, 0, rules); !added.ok()) return added.error();
  return normalizer(std::move(rules));
}

result<frame_part> read_post_processor(const value* section) {
  frame_part frame;
  if (!is_absent(section))
    if (auto added = add_post_processor(*section, 0, frame); !added.ok()) return added.error();
  return frame;
}

} // namespace twill::models::json
