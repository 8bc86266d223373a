#include "net/protocol/prompt_fields.hpp"

namespace twill::net {
namespace {

/// A list of integers is one prompt; anything else in a list makes it a list of prompts.
bool is_id_list(const value_list& list) {
  return !list.empty() && list.front().as_string() == nullptr && list.front().as_list() == nullptr;
}

std::vector<std::int32_t> read_ids(fields& from, const std::string& name, const value& ids,
                                   std::int32_t vocab_size) {
  value_object holder{{name, ids}};
  const value wrapped(std::move(holder));
  fields single(wrapped);
  std::vector<std::int32_t> read;
  single.read(name, read);
  if (!single.ok()) from.reject(single.error());
  for (std::size_t i = 0; i < read.size() && vocab_size > 0; ++i)
    if (read[i] >= vocab_size)
      from.reject(name + "[" + std::to_string(i) + "]",
                  "a token id below " + std::to_string(vocab_size), value(std::int64_t{read[i]}));
  return read;
}

} // namespace

std::vector<any_prompt> read_prompts(fields& from, const std::string& field, bool add_special,
                                     std::int32_t vocab_size, std::size_t most) {
  std::vector<any_prompt> prompts;
  from.require(field);
  if (!from.ok()) return prompts;
  const auto& given = *from.find(field);
  if (const auto* text = given.as_string()) {
    prompts.emplace_back(actors::text_prompt{*text, add_special});
    return prompts;
  }
  const auto* list = given.as_list();
  if (list == nullptr || list->empty()) {
    from.reject(field, "a string, a list of token ids, or a list of either", given);
    return prompts;
  }
  if (is_id_list(*list)) {
    prompts.emplace_back(read_ids(from, field, given, vocab_size));
    return prompts;
  }
  if (list->size() > most) {
    from.reject(field, "at most " + std::to_string(most) + " prompts", given);
    return prompts;
  }
  for (std::size_t i = 0; i < list->size() && from.ok(); ++i) {
    const auto& entry = (*list)[i];
    const auto name = field + "[" + std::to_string(i) + "]";
    if (const auto* text = entry.as_string())
      prompts.emplace_back(actors::text_prompt{*text, add_special});
    else if (entry.as_list() != nullptr)
      prompts.emplace_back(read_ids(from, name, entry, vocab_size));
    else
      from.reject(name, "a string or a list of token ids", entry);
  }
  return prompts;
}

} // namespace twill::net
