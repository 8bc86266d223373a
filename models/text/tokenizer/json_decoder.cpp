#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "models/text/tokenizer/byte_level.hpp"
#include "models/text/tokenizer/char_bpe.hpp"
#include "models/text/tokenizer/json_parts.hpp"

namespace twill::models::json {
namespace {

std::int64_t count(const value& component, std::string_view name) {
  const value* found = component.find(name);
  return found == nullptr || found->as_int() == nullptr ? 0 : *found->as_int();
}

result<nothing> add_decoder(const value& component, int depth, decoder_part& part) {
  const std::string_view type = type_of(component);
  if (type == "ByteLevel") {
    part.byte_level = true;
  } else if (type == "ByteFallback") {
    part.byte_fallback = true;
  } else if (type == "Fuse") {
    // Tokens are always joined, so Fuse changes nothing.
  } else if (type == "Replace") {
    const value* pattern = component.find("pattern");
    if (pattern == nullptr || text(*pattern, "String").empty())
      return unknown("decoder", component); // an expression could match across tokens
    part.replacements.emplace_back(text(*pattern, "String"), text(component, "content"));
  } else if (type == "Metaspace") {
    std::string mark = text(component, "replacement");
    if (mark.empty()) mark = space_mark;
    part.replacements.emplace_back(std::move(mark), " ");
    const std::string scheme = text(component, "prepend_scheme");
    part.drops_space =
        scheme.empty() ? flag(component, "add_prefix_space", true) : scheme != "never";
  } else if (type == "Strip") {
    const auto start = count(component, "start"), stop = count(component, "stop");
    if (stop != 0 || start > 1 || start < 0 || text(component, "content") != " ")
      return failure{errc::unsupported, "`decoder`, Strip must take at most one space from the "
                                        "start, and nothing from the end"};
    part.drops_space = part.drops_space || start == 1;
  } else if (type == "Sequence" && depth < max_sequence_depth) {
    const value* list = component.find("decoders");
    if (list == nullptr || list->as_list() == nullptr)
      return malformed("Sequence, must have a list of decoders");
    for (const value& entry : *list->as_list())
      if (auto added = add_decoder(entry, depth + 1, part); !added.ok()) return added;
  } else {
    return unknown("decoder", component);
  }
  return nothing{};
}

} // namespace

std::string decoder_part::bytes_of(const std::string& token) const {
  if (byte_fallback)
    if (const int byte = byte_of_token(token); byte >= 0)
      return std::string(1, static_cast<char>(byte));
  std::string text = token;
  for (const auto& [what, by] : replacements) {
    std::string next;
    std::size_t from = 0;
    for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, from)) {
      next.append(text, from, at - from).append(by);
      from = at + what.size();
    }
    text = next.append(text, from);
  }
  return byte_level ? byte_level_decode(text).value_or(text) : text;
}

result<decoder_part> read_decoder(const value* section) {
  decoder_part part;
  if (is_absent(section))
    return failure{errc::unsupported, "`decoder`, must be given: without one tokens are words"};
  if (auto added = add_decoder(*section, 0, part); !added.ok()) return added.error();
  return part;
}

} // namespace twill::models::json
