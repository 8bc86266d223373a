#include "models/text/jinja/print.hpp"

#include <cmath>
#include <string_view>

#include "config/base/float_text.hpp"

namespace twill::models::jinja {
namespace {

// Refuses the characters that str.isprintable refuses, as far as they occur in real texts.
bool is_printable(char32_t c) {
  if (c < 0x20 || (c >= 0x7F && c <= 0xA0) || c == 0xAD) return false;
  if (c == 0x1680 || (c >= 0x2000 && c <= 0x200F) || (c >= 0x2028 && c <= 0x202F)) return false;
  if ((c >= 0x205F && c <= 0x206F) || c == 0x3000 || c == 0xFEFF) return false;
  return !(c >= 0xE000 && c <= 0xF8FF) && (c & 0xFFFE) != 0xFFFE && c < 0xE0000;
}

void append_hex(std::string& out, char32_t c) {
  constexpr const char* digits = "0123456789abcdef";
  const int n = c < 0x100 ? 2 : c < 0x10000 ? 4 : 8;
  out += n == 2 ? "\\x" : n == 4 ? "\\u" : "\\U";
  for (int shift = 4 * (n - 1); shift >= 0; shift -= 4)
    out.push_back(digits[c >> shift & 0xF]);
}

void repr_string(std::string& out, std::string_view s) {
  const bool use_double =
      s.find('\'') != std::string_view::npos && s.find('"') == std::string_view::npos;
  const char quote = use_double ? '"' : '\'';
  out.push_back(quote);
  for (std::size_t i = 0, n = 1; i < s.size(); i += n) {
    const char32_t c = character_at(s, i, n);
    if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else if (c == '\t')
      out += "\\t";
    else if (c == '\\' || c == static_cast<char32_t>(quote))
      (out += '\\') += static_cast<char>(c);
    else if (!is_printable(c))
      append_hex(out, c);
    else
      out.append(s.substr(i, n));
  }
  out.push_back(quote);
}

class repr_writer {
public:
  explicit repr_writer(runtime& rt) : rt_(rt) {}

  void write(const val& v) {
    const depth_guard guard(rt_);
    rt_.add_work(1 + (out.size() - charged_) / 64);
    charged_ = out.size();
    if (out.size() > (16u << 20)) rt_.charge_text(out.size());
    if (v.is_undefined())
      out += "Undefined";
    else if (v.is_none())
      out += "None";
    else if (const auto* b = v.as_bool())
      out += *b ? "True" : "False";
    else if (const auto* i = v.as_int())
      out += std::to_string(*i);
    else if (const auto* big = v.as_big())
      out += big->digits;
    else if (const auto* d = v.as_double())
      out += float_repr(*d);
    else if (const auto* t = v.as_text())
      repr_string(out, t->bytes), tainted |= t->tainted();
    else if (const auto* l = v.as_list())
      write_list(*l);
    else if (const auto* dict = v.as_dict())
      write_dict(*dict);
    else
      out += "<" + v.as_object()->type_name() + ">";
  }

  std::string out;
  bool tainted = false;

private:
  void write_list(const list_data& l) {
    if (l.kind == list_data::generator) rt_.fail("a generator has no text; use |list");
    out += l.kind == list_data::tuple ? "(" : "[";
    for (std::size_t i = 0; i < l.items.size(); ++i) {
      if (i > 0) out += ", ";
      write(l.items[i]);
    }
    if (l.kind == list_data::tuple)
      out += l.items.size() == 1 ? ",)" : ")";
    else
      out += "]";
  }

  void write_dict(const dict_data& d) {
    out += "{";
    bool first = true;
    for (const auto& [key, member] : d.items) {
      if (!first) out += ", ";
      first = false;
      write(key);
      out += ": ";
      write(member);
    }
    out += "}";
  }

  runtime& rt_;
  std::size_t charged_ = 0;
};

} // namespace

std::string float_repr(double d) {
  if (std::isnan(d)) return "nan";
  if (std::isinf(d)) return d < 0 ? "-inf" : "inf";
  return float_text(d);
}

text to_repr(runtime& rt, const val& v) {
  repr_writer writer(rt);
  writer.write(v);
  rt.charge_text(writer.out.size());
  return text(std::move(writer.out), writer.tainted);
}

text to_text(runtime& rt, const val& v) {
  if (v.is_undefined()) return {};
  if (const text* t = v.as_text()) return *t;
  return to_repr(rt, v);
}

} // namespace twill::models::jinja
