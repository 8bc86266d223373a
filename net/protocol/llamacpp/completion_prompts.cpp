#include "net/protocol/llamacpp/completion_prompts.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "net/protocol/json/members.hpp"
#include "net/protocol/openai/completions.hpp"

namespace twill::net {
namespace {

/// Limits for texts in a list with token ids, because such texts are tokenized while the body is
/// read.
constexpr std::size_t most_mixed_bytes = 64 * 1024;
constexpr std::size_t most_mixed_texts = 256;

bool is_number(const value& v) {
  return v.as_number().has_value();
}

class prompt_reader {
public:
  prompt_reader(fields& from, const codec_context& context) : from_(from), context_(context) {}

  completion_prompt read(const std::string& name, const value& given) {
    if (const auto* text = given.as_string()) return {actors::text_prompt{*text}, *text};
    if (given.as_object() != nullptr) return read_object(name, given);
    const auto* list = given.as_list();
    if (list != nullptr && !list->empty()) return of_ids(read_list(name, *list));
    from_.reject(name, "a text, or a list of token ids and texts that is not empty", given);
    return {};
  }

private:
  completion_prompt read_object(const std::string& name, const value& given) {
    if (const auto* media = member(given, "multimodal_data");
        media != nullptr && *media != value(value_list{}))
      from_.reject(name + ".multimodal_data", "absent: no model here reads images or sound",
                   *media);
    const auto* text = member(given, "prompt_string");
    if (text == nullptr || text->as_string() == nullptr) {
      from_.reject(name + ".prompt_string", "a text", text == nullptr ? value() : *text);
      return {};
    }
    return {actors::text_prompt{*text->as_string()}, *text->as_string()};
  }

  std::vector<std::int32_t> read_list(const std::string& name, const value_list& list) {
    std::vector<std::int32_t> ids;
    for (std::size_t i = 0; i < list.size() && from_.ok(); ++i) {
      const auto entry = [&] { return name + "[" + std::to_string(i) + "]"; };
      if (const auto* text = list[i].as_string())
        add_text(entry(), *text, i == 0, ids);
      else
        add_id(entry, list[i], ids);
    }
    return ids;
  }

  template <class Name>
  void add_id(Name name, const value& given, std::vector<std::int32_t>& to) {
    const auto id = as_integer(given);
    const std::int64_t most = context_.model.vocab_size > 0
                                  ? context_.model.vocab_size
                                  : std::numeric_limits<std::int32_t>::max();
    if (!id.has_value() || *id < 0 || *id >= most)
      return from_.reject(name(), "a token id below " + std::to_string(most) + ", or a text",
                          given);
    to.push_back(static_cast<std::int32_t>(*id));
  }

  /// Tokenizes `text`. If the text is the first part of the prompt, special tokens such as BOS are
  /// added before it.
  void add_text(const std::string& name, const std::string& text, bool first,
                std::vector<std::int32_t>& to) {
    mixed_bytes_ += text.size();
    mixed_texts_ += 1;
    if (mixed_bytes_ > most_mixed_bytes || mixed_texts_ > most_mixed_texts)
      return from_.reject(name,
                          "among at most " + std::to_string(most_mixed_texts) + " texts of " +
                              std::to_string(most_mixed_bytes) + " bytes together beside token ids",
                          value(text));
    const auto ids = context_.engine.tokenize(context_.model.id, {text, first}, true);
    if (!ids.ok()) return from_.reject(from_engine(ids.code(), ids.detail()));
    to.insert(to.end(), ids.value().begin(), ids.value().end());
  }

  /// Makes a prompt of token ids, with its detokenized text. A prompt that exceeds the context gets
  /// no text, because the engine will refuse the prompt.
  completion_prompt of_ids(std::vector<std::int32_t> ids) {
    completion_prompt made;
    if (from_.ok() && std::ssize(ids) <= context_.model.max_model_len) {
      auto text = context_.engine.detokenize(context_.model.id, ids);
      if (text.ok())
        made.shown = std::move(text).value();
      else
        from_.reject(from_engine(text.code(), text.detail()));
    }
    made.prompt = std::move(ids);
    return made;
  }

  fields& from_;
  const codec_context& context_;
  std::size_t mixed_bytes_ = 0;
  std::size_t mixed_texts_ = 0;
};

} // namespace

std::vector<completion_prompt> read_completion_prompts(fields& from, const codec_context& context) {
  std::vector<completion_prompt> prompts;
  from.require("prompt");
  if (!from.ok()) return prompts;
  const auto& given = *from.find("prompt");
  prompt_reader reader(from, context);
  const auto* list = given.as_list();
  if (list == nullptr || list->empty() || std::any_of(list->begin(), list->end(), is_number)) {
    prompts.push_back(reader.read("prompt", given));
    return prompts;
  }
  if (list->size() > max_prompts_per_call) {
    from.reject("prompt", "at most " + std::to_string(max_prompts_per_call) + " prompts", given);
    return prompts;
  }
  for (std::size_t i = 0; i < list->size() && from.ok(); ++i)
    prompts.push_back(reader.read("prompt[" + std::to_string(i) + "]", (*list)[i]));
  return prompts;
}

} // namespace twill::net
