#include "models/tokenizer/pretokenizer.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <cstddef>
#include <cstdint>
#include <utility>

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
using code_ptr = std::unique_ptr<pcre2_code, code_deleter>;
using context_ptr = std::unique_ptr<pcre2_match_context, context_deleter>;
using data_ptr = std::unique_ptr<pcre2_match_data, data_deleter>;

// PCRE2's \s takes U+180E too, the reference implementations' does not: spell White_Space out.
constexpr std::string_view white_space =
    R"(\x{9}-\x{D}\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";

std::string expand_space(std::string_view expression) {
  std::string out;
  bool in_class = false;
  for (std::size_t i = 0; i < expression.size(); ++i) {
    const char c = expression[i];
    const char next = i + 1 < expression.size() ? expression[i + 1] : '\0';
    if (c == '\\' && (next == 's' || (next == 'S' && !in_class))) {
      if (in_class)
        out.append(white_space);
      else
        out.append(next == 's' ? "[" : "[^").append(white_space).append("]");
      ++i;
    } else if (c == '\\') {
      out.push_back(c);
      if (next != '\0') out.push_back(next), ++i;
    } else {
      if (c == '[') in_class = true;
      if (c == ']') in_class = false;
      out.push_back(c);
    }
  }
  return out;
}

std::string error_text(int code) {
  PCRE2_UCHAR buffer[160] = {};
  pcre2_get_error_message(code, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}

} // namespace

struct pretokenizer::impl {
  std::vector<code_ptr> codes;
  context_ptr context; ///< limits only: read by matching, never written

  result<nothing> split_piece(const pcre2_code* code, pcre2_match_data* data,
                              std::string_view piece, std::vector<std::string_view>& out) const;
};

pretokenizer::pretokenizer() : impl_(std::make_unique<impl>()) {}
pretokenizer::~pretokenizer() = default;

result<std::unique_ptr<const pretokenizer>>
pretokenizer::make(const std::vector<std::string>& expressions) {
  std::unique_ptr<pretokenizer> made(new pretokenizer);
  made->impl_->context.reset(pcre2_match_context_create(nullptr));
  // Any single match of these expressions stays far below; a hostile text cannot buy more.
  pcre2_set_match_limit(made->impl_->context.get(), 64u << 20);
  pcre2_set_heap_limit(made->impl_->context.get(), 256u << 10); // KiB
  for (const std::string& expression : expressions) {
    const std::string source = expand_space(expression);
    int error = 0;
    PCRE2_SIZE at = 0;
    code_ptr code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(source.data()), source.size(),
                                PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &at,
                                nullptr));
    if (!code)
      return failure{errc::unsupported, "pre-tokenizer expression, offset " + std::to_string(at) +
                                            ", " + error_text(error) + ": " + expression};
    // Without a JIT the interpreter matches the same, only slower.
    pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
    made->impl_->codes.push_back(std::move(code));
  }
  return std::unique_ptr<const pretokenizer>(std::move(made));
}

result<nothing> pretokenizer::impl::split_piece(const pcre2_code* code, pcre2_match_data* data,
                                                std::string_view piece,
                                                std::vector<std::string_view>& out) const {
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(piece.data());
  const PCRE2_SIZE* span = pcre2_get_ovector_pointer(data);
  std::size_t done = 0; // bytes already handed out
  std::size_t from = 0;
  while (from < piece.size()) {
    // The text was checked once as a whole; a check per match would cost quadratic time.
    int found =
        pcre2_match(code, subject, piece.size(), from, PCRE2_NO_UTF_CHECK, data, context.get());
    if (found == PCRE2_ERROR_JIT_STACKLIMIT)
      found = pcre2_match(code, subject, piece.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                          data, context.get());
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0)
      return failure{errc::bad_text, "text, cannot be cut into words: " + error_text(found)};
    if (span[1] <= span[0]) { // an empty match cuts nothing: step over one character
      ++from;
      while (from < piece.size() && (static_cast<std::uint8_t>(piece[from]) & 0xC0) == 0x80)
        ++from;
      continue;
    }
    if (span[0] > done) out.push_back(piece.substr(done, span[0] - done));
    out.push_back(piece.substr(span[0], span[1] - span[0]));
    done = from = span[1];
  }
  if (done < piece.size()) out.push_back(piece.substr(done));
  return nothing{};
}

result<nothing> pretokenizer::split(std::string_view text,
                                    std::vector<std::string_view>& pieces) const {
  if (text.empty()) return nothing{};
  std::vector<std::string_view> current{text}, next;
  for (const code_ptr& code : impl_->codes) {
    const data_ptr data(pcre2_match_data_create(1, nullptr));
    next.clear();
    for (const std::string_view piece : current)
      if (auto cut = impl_->split_piece(code.get(), data.get(), piece, next); !cut.ok()) return cut;
    current.swap(next);
  }
  pieces.insert(pieces.end(), current.begin(), current.end());
  return nothing{};
}

} // namespace twill::models
