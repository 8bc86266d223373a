#include "models/text/chat_conventions.hpp"

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "models/text/chat_template.hpp"
#include "models/text/tokenizer/token_table.hpp"

namespace twill::models {
namespace {

constexpr std::uintmax_t max_template_bytes = 1u << 20;

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

std::string folder_chat_template(const std::string& folder, const value* tokenizer_config) {
  const std::string path = folder + "/chat_template.jinja";
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) {
    auto source = read_text_file(path);
    if (source.ok() && !source.value().empty() && source.value().size() <= max_template_bytes)
      return std::move(source).value();
  }
  const value* given =
      tokenizer_config == nullptr ? nullptr : tokenizer_config->find("chat_template");
  if (given == nullptr) return {};
  const std::string* source = given->as_string();
  if (given->as_list() != nullptr)
    for (const value& named : *given->as_list()) {
      const value* name = named.find("name");
      const value* body = named.find("template");
      if (name != nullptr && body != nullptr && *name == value("default"))
        source = body->as_string();
    }
  return source == nullptr || source->size() > max_template_bytes ? std::string() : *source;
}

} // namespace twill::models
