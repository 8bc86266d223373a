#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>

#include "models/text/jinja/operators.hpp"
#include "models/text/jinja/print.hpp"
#include "models/text/jinja/text_ops.hpp"

namespace twill::models::jinja {
namespace {

constexpr int max_width = 1000;

struct conversion {
  bool left = false, plus = false, space = false, zero = false, alternate = false;
  int width = 0;
  int precision = -1;
  char type = 0;
};

class percent_formatter {
public:
  percent_formatter(runtime& rt, const text& format, const val& args)
      : rt_(rt), format_(format), s_(format.bytes), args_(args) {}

  text run() {
    text out;
    while (at_ < s_.size()) {
      const std::size_t percent = std::min(s_.find('%', at_), s_.size());
      out.append(format_, at_, percent);
      at_ = percent;
      if (at_ == s_.size()) break;
      ++at_;
      append_argument(out);
      if (out.bytes.size() > (16u << 20)) rt_.charge_text(out.bytes.size());
    }
    const auto* tuple = args_.as_list();
    const std::size_t given = tuple && tuple->kind == list_data::tuple ? tuple->items.size()
                              : args_.as_dict()                        ? next_
                                                                       : 1;
    if (next_ < given) rt_.fail("not all arguments converted during string formatting");
    return out;
  }

private:
  val next_argument() {
    if (const auto* l = args_.as_list(); l && l->kind == list_data::tuple) {
      if (next_ >= l->items.size()) rt_.fail("not enough arguments for format string");
      return l->items[next_++];
    }
    if (next_++ > 0) rt_.fail("not enough arguments for format string");
    return args_;
  }

  val named_argument() {
    const std::size_t close = s_.find(')', at_);
    if (close == std::string::npos) rt_.fail("incomplete format key");
    if (!args_.as_dict()) rt_.fail("format requires a mapping");
    const val* found = args_.as_dict()->find(std::string_view(s_).substr(at_ + 1, close - at_ - 1));
    if (found == nullptr) rt_.fail("format key is not in the mapping");
    at_ = close + 1;
    return *found;
  }

  int read_digits() {
    int n = 0;
    while (at_ < s_.size() && std::isdigit(static_cast<unsigned char>(s_[at_])) != 0)
      if ((n = n * 10 + (s_[at_++] - '0')) > max_width) rt_.fail("format width is too large");
    return n;
  }

  conversion read_conversion() {
    conversion c;
    for (; at_ < s_.size(); ++at_) {
      if (s_[at_] == '-')
        c.left = true;
      else if (s_[at_] == '+')
        c.plus = true;
      else if (s_[at_] == ' ')
        c.space = true;
      else if (s_[at_] == '0')
        c.zero = true;
      else if (s_[at_] == '#')
        c.alternate = true;
      else
        break;
    }
    c.width = read_digits();
    if (at_ < s_.size() && s_[at_] == '.') ++at_, c.precision = read_digits();
    if (at_ >= s_.size()) rt_.fail("incomplete format");
    c.type = s_[at_++];
    return c;
  }

  void append_argument(text& out) {
    if (at_ < s_.size() && s_[at_] == '%') {
      out.append("%");
      ++at_;
      return;
    }
    const bool named = at_ < s_.size() && s_[at_] == '(';
    const val key = named ? named_argument() : val();
    const conversion c = read_conversion();
    const val v = named ? key : next_argument();
    switch (c.type) {
    case 's':
    case 'r':
    case 'a':
      append_text(out, c, c.type == 's' ? to_text(rt_, v) : to_repr(rt_, v));
      break;
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
    case 'o':
      append_whole(out, c, v);
      break;
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
      append_real(out, c, v);
      break;
    default:
      rt_.fail(std::string("unsupported format character '") + c.type + "'");
    }
  }

  void append_text(text& out, const conversion& c, text t) {
    if (c.precision >= 0) {
      const auto offsets = character_offsets(t.bytes);
      const auto keep = std::min(static_cast<std::size_t>(c.precision), offsets.size() - 1);
      t = slice_bytes(t, 0, offsets[keep]);
    }
    out.append(pad(rt_, t, c.width, " ", c.left ? -1 : 1));
  }

  static std::string flags(const conversion& c) {
    std::string f = "%";
    if (c.left) f += '-';
    if (c.plus) f += '+';
    if (c.space) f += ' ';
    if (c.zero) f += '0';
    if (c.alternate) f += '#';
    if (c.width > 0) f += std::to_string(c.width);
    if (c.precision >= 0) f += "." + std::to_string(c.precision);
    return f;
  }

  void append_whole(text& out, const conversion& c, const val& v) {
    if (v.as_big()) return append_big(out, c, *v.as_big());
    auto i = v.whole();
    const bool decimal = c.type == 'd' || c.type == 'i' || c.type == 'u';
    if (!i && decimal && v.as_double() && std::fabs(*v.as_double()) < 9e18)
      i = static_cast<std::int64_t>(*v.as_double());
    if (!i)
      rt_.fail(std::string("%") + c.type + " format: a number is required, not " + type_name(v));
    const auto magnitude =
        *i < 0 ? 0 - static_cast<std::uint64_t>(*i) : static_cast<std::uint64_t>(*i);
    const char* const f = c.type == 'x' ? "%llx" : c.type == 'X' ? "%llX" : "%llo";
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, decimal ? "%llu" : f,
                  static_cast<unsigned long long>(magnitude));
    append_digits(out, c, *i < 0, buffer);
  }

  void append_big(text& out, const conversion& c, const big_integer& number) {
    if (c.type != 'd' && c.type != 'i' && c.type != 'u')
      rt_.fail(std::string("%") + c.type + " format: the integer does not fit 64 bits");
    const bool negative = number.digits.front() == '-';
    append_digits(out, c, negative, number.digits.substr(negative ? 1 : 0));
  }

  /// Writes a sign and then the digits. Python also writes negative hexadecimal and octal numbers
  /// with a sign, which snprintf cannot do.
  void append_digits(text& out, const conversion& c, bool negative, std::string digits) {
    std::string lead = negative ? "-" : c.plus ? "+" : c.space ? " " : "";
    if (c.alternate && (c.type == 'x' || c.type == 'X' || c.type == 'o'))
      lead += std::string("0") + c.type;
    const auto fill_to = [&](std::size_t n) {
      if (digits.size() < n) digits.insert(0, n - digits.size(), '0');
    };
    if (c.precision >= 0) fill_to(static_cast<std::size_t>(c.precision));
    const auto width = static_cast<std::size_t>(c.width);
    if (c.zero && !c.left && width > lead.size()) fill_to(width - lead.size());
    out.append(pad(rt_, text(lead + digits), c.width, " ", c.left ? -1 : 1));
  }

  void append_real(text& out, const conversion& c, const val& v) {
    const auto d = v.real();
    if (!d) rt_.fail("must be real number, not " + type_name(v));
    char buffer[2 * max_width + 400];
    std::snprintf(buffer, sizeof buffer, (flags(c) + c.type).c_str(), *d);
    out.append(buffer);
  }

  runtime& rt_;
  const text& format_;
  const std::string& s_;
  const val& args_;
  std::size_t at_ = 0;
  std::size_t next_ = 0;
};

} // namespace

val format_percent(runtime& rt, const text& format, const val& args) {
  return rt.make_text(percent_formatter(rt, format, args).run());
}

} // namespace twill::models::jinja
