#include "actors/engine/text_port.hpp"

#include <utility>

#include "actors/session/prompt.hpp"

namespace twill::actors {

result<std::vector<std::int32_t>>
text_port::tokenize(const std::string& model, const text_prompt& text, bool parse_special) const {
  const auto found = text_model(model);
  if (!found.ok()) return found.error();
  return encode_text(*found.value(), text, parse_special);
}

result<std::vector<std::int32_t>> text_port::tokenize_chat(const std::string& model,
                                                           const chat_prompt& chat) const {
  const auto found = text_model(model);
  if (!found.ok()) return found.error();
  return encode_chat(*found.value(), chat);
}

result<std::string> text_port::render_chat(const std::string& model,
                                           const chat_prompt& chat) const {
  const auto found = text_model(model);
  if (!found.ok()) return found.error();
  auto rendered = actors::render_chat(*found.value(), chat);
  if (!rendered.ok()) return rendered.error();
  return std::move(rendered.value().text);
}

result<std::string> text_port::detokenize(const std::string& model,
                                          const std::vector<std::int32_t>& ids) const {
  const auto found = text_model(model);
  if (!found.ok()) return found.error();
  const served_model& m = *found.value();
  if (const auto checked = check_ids(m, ids, "tokens"); !checked.ok()) return checked.error();
  return m.files->text->decode(ids, false);
}

result<std::vector<token_piece>> text_port::pieces(const std::string& model,
                                                   const std::vector<std::int32_t>& ids) const {
  const auto found = text_model(model);
  if (!found.ok()) return found.error();
  const served_model& m = *found.value();
  if (const auto checked = check_ids(m, ids, "tokens"); !checked.ok()) return checked.error();
  std::vector<token_piece> out;
  out.reserve(ids.size());
  for (std::int32_t id : ids)
    out.push_back({id, m.files->text->token_bytes(id, true)});
  return out;
}

result<tokenizer_info> text_port::describe_tokenizer(const std::string& model) const {
  const auto found = text_model(model);
  if (!found.ok()) return found.error();
  return actors::describe_tokenizer(*found.value()->files);
}

} // namespace twill::actors
