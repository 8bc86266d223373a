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

// make_context of Qwen-7B-Chat: role, newline and content are encoded one by one.
constexpr std::string_view qwen =
    "{% if not messages or messages[0]['role'] != 'system' %}{{ '<|im_start|>system' + CUT + '\\n' "
    "+ CUT + 'You are a helpful assistant.' + '<|im_end|>' + '\\n' }}{% endif %}"
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + CUT + '\\n' + CUT + "
    "message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant' + CUT + '\\n' }}{% endif %}";

// build_chat_input of chatglm3-6b: each role's line and each content are encoded apart. The prefix
// [gMASK] sop is the tokenizer's. The model writes the newline after the last role itself.
constexpr std::string_view chatglm =
    "{% for message in messages %}"
    "{% if message['role'] == 'system' %}{{ '<|system|>' }}"
    "{% elif message['role'] == 'user' %}{{ '<|user|>' }}"
    "{% elif message['role'] == 'assistant' %}{{ '<|assistant|>' }}"
    "{% elif message['role'] in ['observation', 'tool'] %}{{ '<|observation|>' }}"
    "{% else %}{{ raise_exception('Roles are system, user, assistant, observation and tool') }}"
    "{% endif %}"
    "{{ message['metadata'] | default('') + '\\n' + CUT + message['content'] }}"
    "{% if message['role'] == 'system' and message['tools'] %}"
    "{{ '\\n' + message['tools'] | tojson(indent=4) }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}";

// build_chat_input of Baichuan2-13B-Chat: system text stands bare, in front.
constexpr std::string_view baichuan =
    "{% for message in messages %}"
    "{% if message['role'] == 'system' %}{{ CUT + message['content'] }}"
    "{% elif message['role'] == 'user' %}{{ USER + message['content'] }}"
    "{% elif message['role'] == 'assistant' %}{{ ASSISTANT + message['content'] }}"
    "{% else %}{{ raise_exception('Roles are system, user and assistant') }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}{{ ASSISTANT }}{% endif %}";

// Mistral-7B-Instruct; the model knows no system role. An answer is encoded apart from the
// question.
constexpr std::string_view mistral =
    "{{ bos_token }}{% for message in messages %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}"
    "{% elif message['role'] == 'assistant' %}{{ CUT + message['content'] + eos_token }}"
    "{% else %}{{ raise_exception('Roles are user and assistant') }}{% endif %}{% endfor %}";

std::string jinja_string(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  return out += "'";
}

std::string with_names(std::string_view source, std::string_view more = {}) {
  return "{% set CUT = '" + std::string(cut_mark) + "' %}" + std::string(more) +
         std::string(source);
}

/// True when `text` alone is one control token.
bool has_control(const tokenizer& vocabulary, std::string_view text) {
  const auto ids = vocabulary.encode(text, {.parse_special = true});
  return ids.ok() && ids.value().size() == 1 && vocabulary.is_special(ids.value().front());
}

/// True when `text` alone is one token, of whatever kind.
bool has_token(const tokenizer& vocabulary, std::string_view text) {
  const auto ids = vocabulary.encode(text, {.parse_special = true});
  return ids.ok() && ids.value().size() == 1;
}

std::string baichuan_template(const tokenizer& text, const value* generation_config) {
  const auto role = [&](const char* name, std::string_view known) {
    const value* id = generation_config == nullptr ? nullptr : generation_config->find(name);
    if (id == nullptr || id->as_int() == nullptr) return jinja_string(known);
    return jinja_string(text.token_bytes(static_cast<token_id>(*id->as_int()), true));
  };
  return with_names(baichuan, "{% set USER = " + role("user_token_id", "<reserved_106>") +
                                  " %}{% set ASSISTANT = " +
                                  role("assistant_token_id", "<reserved_107>") + " %}");
}

} // namespace

std::string known_chat_template(const std::string& family, const value& config,
                                const tokenizer& text, const value* generation_config) {
  if (family == "chatglm") return with_names(chatglm);
  if (family == "baichuan")
    return baichuan_template(text, generation_config != nullptr ? generation_config : &config);
  if (family == "qwen") return with_names(qwen);
  if (has_control(text, "<|im_start|>") && has_control(text, "<|im_end|>"))
    return std::string(chatml);
  return family == "mistral" ? with_names(mistral) : std::string();
}

std::string known_gguf_chat_template(const std::string& family, const tokenizer& text) {
  if (family == "qwen" && has_control(text, "<|im_start|>")) return with_names(qwen);
  // Unlike the folder's, a file's tokenizer leaves the prefix to the template.
  if (family == "chatglm" && has_control(text, "[gMASK]") && has_control(text, "<|user|>"))
    return with_names("[gMASK]sop" + std::string(chatglm));
  // Files whose role tokens are ordinary ones can't spell them.
  if (family == "baichuan" && has_token(text, "<reserved_106>"))
    return baichuan_template(text, nullptr);
  return {};
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
