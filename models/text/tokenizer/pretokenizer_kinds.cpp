#include <array>
#include <span>

#include "models/text/tokenizer/pretokenizer.hpp"

namespace twill::models {
namespace {

// The published expressions of each family; those of GPT-2, GPT-4 and GPT-4o are OpenAI's
// (tiktoken), the others follow the tokenizer.json of the named models.
constexpr const char* digit = R"(\p{N})";
constexpr const char* digits_by_three = R"(\p{N}{1,3})";
constexpr const char* gpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* llama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* qwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* tekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* gpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* line_break = R"([\r\n])";
constexpr const char* deepseek_letters = R"(\s?\p{L}+)";
constexpr const char* deepseek_punctuation = R"(\s?\p{P}+)";
constexpr const char* deepseek_han = R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";
constexpr const char* deepseek3_han = R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)";
constexpr const char* deepseek3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct named {
  std::string_view name;
  std::array<const char*, 5> expressions; ///< used up to the first nullptr
  bool ignore_merges = false;
  bool add_bos_default = false;
};

constexpr named kinds[] = {
    {"gpt-2", {gpt2}},
    {"gpt2", {gpt2}},
    {"phi-2", {gpt2}},
    {"roberta-bpe", {gpt2}},
    {"jina-es", {gpt2}},
    {"jina-de", {gpt2}},
    {"jina-v2-code", {gpt2}},
    {"mpt", {gpt2}},
    {"olmo", {gpt2}},
    {"jais", {gpt2}},
    {"smollm", {digit, gpt2}},
    {"starcoder", {digit, gpt2}},
    {"refact", {digit, gpt2}},
    {"command-r", {digit, gpt2}},
    {"codeshell", {digit, gpt2}},
    {"exaone", {digit, gpt2}},
    {"llama-bpe", {llama3}, true, true},
    {"llama3", {llama3}, true, true},
    {"llama-v3", {llama3}, true, true},
    {"falcon3", {llama3}, true, true},
    {"dbrx", {llama3}},
    {"smaug-bpe", {llama3}},
    {"glm4", {llama3}},
    {"chatglm-bpe", {llama3}},
    {"qwen2", {qwen2}},
    {"deepseek-r1-qwen", {qwen2}},
    {"stablelm2", {qwen2}},
    {"tekken", {tekken}, true, true},
    {"gpt-4o", {gpt4o}},
    {"llama4", {gpt4o}, true, true},
    {"deepseek-coder", {line_break, deepseek_letters, deepseek_punctuation, deepseek_han, digit}},
    {"deepseek-v3", {digits_by_three, deepseek3_han, deepseek3}},
};

} // namespace

const char* const gpt2_expression = gpt2;

result<pretokenizer_kind> find_pretokenizer(std::string_view name) {
  for (const named& kind : kinds) {
    if (kind.name != name) continue;
    pretokenizer_kind found{{}, kind.ignore_merges, kind.add_bos_default};
    for (const char* expression : kind.expressions)
      if (expression != nullptr) found.expressions.emplace_back(expression);
    return found;
  }
  return failure{errc::unsupported, "tokenizer.ggml.pre, twill does not know this pre-tokenizer: " +
                                        std::string(name)};
}

} // namespace twill::models
