#include <array>
#include <span>

#include "models/text/tokenizer/pretokenizer.hpp"

namespace twill::models {
namespace {

// The expressions of GPT-2, GPT-4 and GPT-4o are from OpenAI's tiktoken. Most others are from the
// tokenizer.json of the model family after which the constant is named. The names in the table
// `kinds` below, and the options that each name has besides its expressions, are llama.cpp's
// (src/llama-vocab.cpp, commit 00ad355).
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
constexpr const char* qwen35 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* minicpm5 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* ufakzeka =
    R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* seed_coder =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* jais2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s)";
constexpr const char* exaone_moe =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr const char* bailing =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr const char* youtu =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* youtu_scripts =
    R"([\x{AC00}-\x{D7A3}\x{3131}-\x{318E}]+|[\x{FF01}\x{2026}\x{201C}\x{201D}\x{2018}\x{2019}\x{2014}\x{FF1A}\x{FF1B}\x{FF0C}\x{3001}-\x{303F}\x{FE30}-\x{FE4F}]+|[\x{3105}-\x{312F}]+|[\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)";
constexpr const char* kimi2 =
    R"(\p{sc:Han}+|[^\r\n\p{L}\p{N}]?(?:(?!\p{sc:Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])*(?:(?!\p{sc:Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?(?:(?!\p{sc:Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])+(?:(?!\p{sc:Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* lines = R"([^\n]+|\n+)";
constexpr const char* digits = R"(\p{N}+)";
constexpr const char* three_digits = "[0-9]{3}";
constexpr const char* symbols = R"([\p{P}$+<=>^~|]+)";
constexpr const char* falcon_symbols = R"([\p{P}$+<=>^~|`]+)";
constexpr const char* bloom =
    R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{964}\x{6D4}\x{60C})]+)";
constexpr const char* sentinel = "<sentinel:[0-9]+>";
constexpr const char* image = "IMGIMG[A-I]{1,4}Z";
constexpr const char* chameleon_spaces = R"([\t\n]|    |  )";
constexpr const char* punctuation = R"([\p{P}!-/:-@\[-`{-~])";
constexpr const char* afmoe_scripts =
    R"([\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{F900}-\x{FAFF}\x{3040}-\x{309F}\x{30A0}-\x{30FF}\x{FF65}-\x{FF9F}\x{2F00}-\x{2FDF}\x{E40}-\x{E7F}\x{E80}-\x{EFF}\x{1780}-\x{17FF}\x{1000}-\x{109F}\x{AA60}-\x{AA7F}\x{A9E0}-\x{A9FF}\x{AC00}-\x{D7AF}\x{1100}-\x{11FF}]+)";
/// A run of decimal digits that is not followed by a word character. The first assertion lets a
/// match begin only at the first digit of a run, which keeps the search linear.
constexpr const char* whole_digits =
    R"((?<!\d)\d++(?![\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE}\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189}]))";
constexpr const char* decimal_digits = R"(\d++)";
constexpr const char* line_break = R"([\r\n])";
constexpr const char* deepseek_letters = R"(\s?\p{L}+)";
constexpr const char* deepseek_punctuation = R"(\s?\p{P}+)";
constexpr const char* deepseek_han = R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";
constexpr const char* deepseek3_han = R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)";
constexpr const char* deepseek3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr const char* spark2 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+)";
constexpr const char* deepseek_llm_letters =
    R"(\s?[\x{41}-\x{5A}\x{61}-\x{7A}\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+)";
constexpr const char* deepseek_llm_symbols =
    R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)";
constexpr const char* line_end_spaces =
    R"((?<!\s)\s++$)"; // \s+$ in linear time; no line break is left

struct step {
  constexpr step(const char* given = nullptr, bool threes = false)
      : expression(given), in_threes(threes) {}

  const char* expression;
  bool in_threes;
};

struct named {
  std::string_view name;
  std::array<step, 6> steps; ///< used up to the first step without an expression
  bool ignore_merges = false;
  bool add_bos_default = false;
};

constexpr named kinds[] = {
    {"default", {symbols, gpt2, digits, three_digits}},
    {"gpt-2", {gpt2}},
    {"gpt2", {gpt2}},
    {"phi-2", {gpt2}},
    {"roberta-bpe", {gpt2}},
    {"jina-es", {gpt2}},
    {"jina-de", {gpt2}},
    {"jina-v1-en", {gpt2}},
    {"jina-v2-code", {gpt2}},
    {"jina-v2-de", {gpt2}},
    {"jina-v2-es", {gpt2}},
    {"mpt", {gpt2}},
    {"olmo", {gpt2}},
    {"jais", {gpt2}},
    {"gigachat", {gpt2}},
    {"a.x-4.0", {gpt2}},
    {"mellum", {gpt2}},
    {"modern-bert", {gpt2}},
    {"exaone4", {gpt2}},
    {"trillion", {gpt2}},
    {"granite-docling", {gpt2}},
    {"smollm", {digit, gpt2}},
    {"starcoder", {digit, gpt2}},
    {"refact", {digit, gpt2}},
    {"command-r", {digit, gpt2}},
    {"codeshell", {digit, gpt2}},
    {"exaone", {digit, gpt2}},
    {"minerva-7b", {digit, gpt2}},
    {"mellum2", {digit, gpt2}},
    {"llama-bpe", {llama3}, true, true},
    {"llama3", {llama3}, true, true},
    {"llama-v3", {llama3}, true, true},
    {"falcon3", {llama3}, true, true},
    {"falcon-h1", {llama3}, true, true},
    {"pixtral", {llama3}, true, true},
    {"midm-2.0", {llama3}, true, true},
    {"lfm2", {llama3}, true, true},
    {"jina-v5-nano", {llama3}, true, true},
    {"smollm3", {llama3}, true, false},
    {"dbrx", {llama3}},
    {"smaug-bpe", {llama3}},
    {"glm4", {llama3}},
    {"chatglm-bpe", {llama3}},
    {"jais-2", {jais2}},
    {"qwen2", {qwen2}},
    {"deepseek-r1-qwen", {qwen2}},
    {"stablelm2", {qwen2}},
    {"kormo", {qwen2}},
    {"f2llmv2", {qwen2}},
    {"megrez", {qwen2}},
    {"hunyuan", {qwen2}},
    {"solar-open", {qwen2}},
    {"grok-2", {qwen2}},
    {"qwen35", {qwen35}},
    {"ufakzeka", {ufakzeka}},
    {"laguna", {lines, qwen2}},
    {"minicpm5", {digits_by_three, minicpm5}, true, false},
    {"seed-coder", {seed_coder}},
    {"bailingmoe", {bailing}},
    {"bailingmoe2", {bailing}},
    {"llada-moe", {bailing}},
    {"exaone-moe", {exaone_moe}},
    {"tekken", {tekken}, true, true},
    {"gpt-4o", {gpt4o}},
    {"kanana2", {gpt4o}},
    {"talkie", {gpt4o}},
    {"minimax-m2", {gpt4o}},
    {"llama4", {gpt4o}, true, true},
    {"granite-embed-multi-97m", {gpt4o}, true, false},
    {"tiny_aya", {whole_digits, {whole_digits, true}, gpt4o}},
    {"cohere2moe", {whole_digits, {whole_digits, true}, gpt4o}},
    {"superbpe", {digits, {decimal_digits, true}}},
    {"afmoe", {digits, {digits, true}, afmoe_scripts, deepseek3}},
    {"youtu", {youtu_scripts, youtu}, true, false},
    {"kimi-k2", {kimi2}},
    {"falcon", {falcon_symbols, gpt2, three_digits}},
    {"bloom", {bloom}},
    {"poro-chat", {bloom}},
    {"gpt3-finnish", {bloom}},
    {"viking", {bloom, digit}},
    {"chameleon", {sentinel, image, chameleon_spaces, digit, punctuation, gpt2}, false, true},
    {"deepseek-llm",
     {line_break, deepseek_llm_letters, deepseek_llm_symbols, line_end_spaces, deepseek_han,
      digits}},
    {"deepseek-coder", {line_break, deepseek_letters, deepseek_punctuation, deepseek_han, digit}},
    {"deepseek-v3", {digits_by_three, deepseek3_han, deepseek3}},
    {"hunyuan-dense", {digits_by_three, deepseek3_han, deepseek3}},
    {"hy_v4", {digits_by_three, deepseek3_han, deepseek3}},
    {"joyai-llm", {digits_by_three, deepseek3_han, deepseek3}},
    {"spark2_5", {digits_by_three, deepseek3_han, spark2, digit}},
};

} // namespace

const char* const gpt2_expression = gpt2;

result<pretokenizer_kind> find_pretokenizer(std::string_view name) {
  for (const named& kind : kinds) {
    if (kind.name != name) continue;
    pretokenizer_kind found{{}, kind.ignore_merges, kind.add_bos_default};
    for (const step& s : kind.steps)
      if (s.expression != nullptr) found.steps.push_back({s.expression, s.in_threes});
    return found;
  }
  return failure{errc::unsupported, "tokenizer.ggml.pre, twill does not know this pre-tokenizer: " +
                                        std::string(name)};
}

std::optional<std::vector<split_step>> linear_steps(std::string_view expression) {
  using steps = std::vector<split_step>;
  if (expression == R"((?=(\d{3})+(?!\d)))") return steps{{decimal_digits, true}};
  if (expression == R"(\d{1,3}(?=(?:\d{3})*\b))")
    return steps{{whole_digits, false}, {whole_digits, true}};
  return std::nullopt;
}

std::vector<std::string_view> pretokenizer_names() {
  std::vector<std::string_view> names;
  for (const named& kind : kinds)
    names.push_back(kind.name);
  return names;
}

} // namespace twill::models
