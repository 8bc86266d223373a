#include "models/text/tokenizer/regex.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "models/text/text_limits.hpp"
#include "models/text/tokenizer/oniguruma.hpp"
#include "models/text/tokenizer/unicode.hpp"

namespace twill::models {
namespace {

struct code_deleter {
  void operator()(pcre2_code* p) const { pcre2_code_free(p); }
};
struct context_deleter {
  void operator()(pcre2_match_context* p) const { pcre2_match_context_free(p); }
};
struct data_deleter {
  void operator()(pcre2_match_data* p) const { pcre2_match_data_free(p); }
};

// PCRE2's \s matches U+180E too, and its \w depends on the version, so both are spelled out.
constexpr std::string_view white_space =
    R"(\x{9}-\x{D}\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
constexpr std::string_view word =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{200C}\x{200D}\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189})";

/// Appends the class that the escape of a backslash and `c` stands for. Returns false if the escape
/// must stay as it is, as a negated class inside another class must.
bool expand_class(char c, bool in_class, std::string& out) {
  const bool negated = c == 'S' || c == 'W';
  if ((c != 's' && c != 'w' && !negated) || (in_class && negated)) return false;
  const std::string_view members = c == 's' || c == 'S' ? white_space : word;
  if (in_class)
    out.append(members);
  else
    out.append(negated ? "[^" : "[").append(members).append("]");
  return true;
}

std::string expand_classes(std::string_view expression) {
  std::string out;
  bool in_class = false;
  for (std::size_t i = 0; i < expression.size(); ++i) {
    const char c = expression[i];
    if (c == '\\' && i + 1 < expression.size()) {
      const char next = expression[++i];
      if (!expand_class(next, in_class, out)) out.push_back(c), out.push_back(next);
      continue;
    }
    if (c == '[') in_class = true;
    if (c == ']') in_class = false;
    out.push_back(c);
  }
  return out;
}

std::string error_text(int code) {
  PCRE2_UCHAR buffer[160] = {};
  pcre2_get_error_message(code, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}

} // namespace

struct regex::impl {
  std::unique_ptr<pcre2_code, code_deleter> code;
  std::unique_ptr<pcre2_match_context, context_deleter> context; ///< the match limits; constant
};

struct regex::finder::impl {
  const regex::impl* what;
  std::unique_ptr<pcre2_match_data, data_deleter> data;
};

regex::regex() : impl_(std::make_unique<impl>()) {}
regex::~regex() = default;

result<std::shared_ptr<const regex>> regex::make(const std::string& expression) {
  constexpr std::size_t max_bytes = 64u << 10;
  if (expression.size() > max_bytes)
    return failure{errc::unsupported, "expression, must have at most 65536 bytes, given " +
                                          std::to_string(expression.size())};
  return compile(expand_classes(expression), expression);
}

result<std::shared_ptr<const regex>> regex::make_oniguruma(const std::string& expression) {
  const auto translated = oniguruma_to_pcre2(expression);
  if (!translated.ok()) return translated.error();
  return compile(translated.value(), expression);
}

result<std::shared_ptr<const regex>> regex::compile(const std::string& source,
                                                    const std::string& given) {
  std::shared_ptr<regex> compiled(new regex);
  int error = 0;
  PCRE2_SIZE at = 0;
  compiled->impl_->code.reset(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(source.data()), source.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &at, nullptr));
  if (!compiled->impl_->code)
    return failure{errc::unsupported, "expression, offset " + std::to_string(at) + ", " +
                                          error_text(error) + ": " + given};
  // If there is no JIT, the interpreter finds the same matches, but more slowly.
  pcre2_jit_compile(compiled->impl_->code.get(), PCRE2_JIT_COMPLETE);
  compiled->impl_->context.reset(pcre2_match_context_create(nullptr));
  // A match of a known expression needs far less; this limit bounds the time of hostile texts.
  pcre2_set_match_limit(compiled->impl_->context.get(), 64u << 20);
  pcre2_set_heap_limit(compiled->impl_->context.get(), 256u << 10); // KiB
  return std::shared_ptr<const regex>(std::move(compiled));
}

regex::finder::finder(const regex& what)
    : impl_(std::make_unique<impl>(impl{what.impl_.get(), nullptr})) {
  impl_->data.reset(pcre2_match_data_create(1, nullptr));
}
regex::finder::~finder() = default;

result<nothing> regex::finder::find_all(std::string_view text, match_list& matches) {
  matches.clear();
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  const pcre2_code* code = impl_->what->code.get();
  pcre2_match_data* data = impl_->data.get();
  pcre2_match_context* context = impl_->what->context.get();
  const PCRE2_SIZE* span = pcre2_get_ovector_pointer(data);
  std::size_t last_end = text.size() + 1; // end of the last match; too large at first
  for (std::size_t from = 0; from <= text.size();) {
    // The whole text was already checked to be valid UTF-8, because a check for each match would
    // take quadratic time.
    int found = pcre2_match(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK, data, context);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT)
      found = pcre2_match(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data,
                          context);
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0)
      return failure{errc::bad_text, "text, cannot be cut into words: " + error_text(found)};
    if (span[0] < from || span[1] < span[0]) // `\K` in a lookaround moved the match's start
      return failure{errc::bad_text, "text, cannot be cut into words: a match ends where it did "
                                     "not begin"};
    if (span[0] == span[1] && span[1] == last_end) {
      from += last_end < text.size() ? character_length(text[from]) : 1;
      continue;
    }
    matches.emplace_back(span[0], span[1]);
    // The search ends early if its result is unwanted, because an expression that looks far ahead
    // at each match takes quadratic time.
    if (matches.size() % 4096 == 0 && text_limits::unwanted()) break;
    from = last_end = span[1];
  }
  return nothing{};
}

} // namespace twill::models
