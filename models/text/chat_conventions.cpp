#include "models/text/chat_conventions.hpp"

#include <string_view>

#include "models/text/chat_template.hpp"

namespace twill::models {
namespace {

constexpr std::string_view chatml =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] "
    "+ '<|im_end|>' + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

} // namespace

std::string jinja_string(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  return out += "'";
}

std::string with_cut_marks(std::string_view source, std::string_view more) {
  return "{% set CUT = '" + std::string(cut_mark) + "' %}" + std::string(more) +
         std::string(source);
}

bool has_token(const tokenizer& vocabulary, std::string_view text) {
  const auto ids = vocabulary.encode(text, {.parse_special = true});
  return ids.ok() && ids.value().size() == 1;
}

bool has_control_token(const tokenizer& vocabulary, std::string_view text) {
  const auto ids = vocabulary.encode(text, {.parse_special = true});
  return ids.ok() && ids.value().size() == 1 && vocabulary.is_special(ids.value().front());
}

std::string chatml_template(const tokenizer& vocabulary) {
  const bool fits =
      has_control_token(vocabulary, "<|im_start|>") && has_control_token(vocabulary, "<|im_end|>");
  return fits ? std::string(chatml) : std::string();
}

std::string known_chat_template(const chat_convention& family, const chat_source& model) {
  return family.of_folder == nullptr ? chatml_template(model.text) : family.of_folder(model);
}

std::string known_gguf_chat_template(const chat_convention& family, const tokenizer& text) {
  return family.of_gguf == nullptr ? std::string() : family.of_gguf(text);
}

} // namespace twill::models
