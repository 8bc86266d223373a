#include "models/text/jinja/str_format.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <string>

#include "models/text/jinja/operators.hpp"
#include "models/text/jinja/print.hpp"
#include "models/text/jinja/text_ops.hpp"

namespace twill::models::jinja {
namespace {

class brace_formatter {
public:
  brace_formatter(runtime& rt, const text& format, const call_args& args)
      : rt_(rt), format_(format), s_(format.bytes), args_(args) {}

  text run() {
    text out;
    while (at_ < s_.size()) {
      const std::size_t brace = std::min(s_.find_first_of("{}", at_), s_.size());
      out.append(format_, at_, brace);
      at_ = brace;
      if (at_ == s_.size()) break;
      if (at_ + 1 < s_.size() && s_[at_ + 1] == s_[at_]) {
        out.append(format_, at_, at_ + 1);
        at_ += 2;
      } else if (s_[at_] == '}') {
        rt_.fail("Single '}' encountered in format string");
      } else {
        append_field(out);
      }
      if (out.bytes.size() > (16u << 20)) rt_.charge_text(out.bytes.size());
    }
    return out;
  }

private:
  val field_value(std::string_view name) {
    if (name.empty()) return positional(next_++);
    if (std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; }))
      return positional(name.size() > 6 ? args_.positional.size()
                                        : std::strtoul(std::string(name).c_str(), nullptr, 10));
    for (const auto& [key, argument] : args_.named)
      if (key == name) return argument;
    rt_.fail("format() has no argument '" + std::string(name) + "'");
  }

  val positional(std::size_t i) const {
    if (i >= args_.positional.size())
      rt_.fail("Replacement index " + std::to_string(i) + " out of range for positional args");
    return args_.positional[i];
  }

  void append_field(text& out) {
    const std::size_t close = s_.find('}', at_);
    if (close == std::string::npos) rt_.fail("expected '}' before end of string");
    const std::string_view field = std::string_view(s_).substr(at_ + 1, close - at_ - 1);
    if (field.find('{') != std::string_view::npos)
      rt_.fail("nested fields in format strings are not supported");
    at_ = close + 1;
    const std::size_t colon = std::min(field.find(':'), field.size());
    std::string_view name = field.substr(0, colon);
    const std::string_view spec = colon < field.size() ? field.substr(colon + 1) : "";
    char conversion = 0;
    if (const std::size_t mark = name.find('!'); mark != std::string_view::npos) {
      conversion = mark + 1 < name.size() ? name[mark + 1] : '?';
      name = name.substr(0, mark);
    }
    if (name.find_first_of(".[") != std::string_view::npos)
      rt_.fail("attributes in format strings are not supported");
    val v = field_value(name);
    if (conversion == 'r')
      v = rt_.make_text(to_repr(rt_, v));
    else if (conversion == 's')
      v = rt_.make_text(to_text(rt_, v));
    else if (conversion != 0)
      rt_.fail("unknown conversion in format string");
    out.append(format_value(v, spec));
  }

  /// Parses [[fill]align][sign][0][width][.precision][type].
  text format_value(const val& v, std::string_view spec) {
    if (spec.empty()) return to_text(rt_, v);
    std::string fill = " ";
    char align = 0, type = 0;
    std::string percent = "%";
    std::size_t first = 0;
    character_at(spec, 0, first);
    if (first < spec.size() &&
        std::string_view("<>^").find(spec[first]) != std::string_view::npos) {
      fill = spec.substr(0, first);
      align = spec[first];
      spec.remove_prefix(first + 1);
    } else if (std::string_view("<>^").find(spec[0]) != std::string_view::npos) {
      align = spec[0];
      spec.remove_prefix(1);
    }
    if (!spec.empty() && (spec[0] == '+' || spec[0] == ' '))
      percent += spec[0], spec.remove_prefix(1);
    else if (!spec.empty() && spec[0] == '-')
      spec.remove_prefix(1);
    if (!spec.empty() &&
        std::string_view("sdfFeEgGxXo").find(spec.back()) != std::string_view::npos)
      type = spec.back(), spec.remove_suffix(1);
    if (spec.find_first_not_of("0123456789.") != std::string_view::npos || spec.size() > 8)
      rt_.fail("invalid format specifier");
    const std::size_t dot = std::min(spec.find('.'), spec.size());
    std::string width(spec.substr(0, dot));
    const bool zero = width.starts_with('0') && align == 0 && v.is_number();
    const bool is_whole_type = type == 'd' || type == 'x' || type == 'X' || type == 'o';
    if (type != 0 && ((type == 's') == v.is_number() || (is_whole_type && v.as_double())))
      rt_.fail(std::string("Unknown format code '") + type + "' for this object");
    if (type == 0)
      type = !v.is_number() ? 's' : v.as_double() ? (dot < spec.size() ? 'g' : 's') : 'd';
    percent += (zero ? width : "") + std::string(spec.substr(dot)) + type;
    const text body = *format_percent(rt_, text(percent), single(v)).as_text();
    const int where = align == '<'    ? -1
                      : align == '>'  ? 1
                      : align == '^'  ? 0
                      : v.is_number() ? 1
                                      : -1;
    return pad_to(body, std::atoi(width.c_str()), fill, where);
  }

  /// Pads `body`. To centre, format() puts an odd fill character on the right, unlike str.center.
  text pad_to(const text& body, std::int64_t width, const std::string& fill, int where) {
    if (where != 0) return pad(rt_, body, width, fill, where);
    const auto n = static_cast<std::int64_t>(count_characters(body.bytes));
    const std::int64_t missing = std::max<std::int64_t>(width - n, 0);
    return pad(rt_, pad(rt_, body, n + missing / 2, fill, 1), width, fill, -1);
  }

  val single(const val& v) { return val(rt_.make_list(list_data::tuple, {v})); }

  runtime& rt_;
  const text& format_;
  const std::string& s_;
  const call_args& args_;
  std::size_t at_ = 0;
  std::size_t next_ = 0;
};

} // namespace

text str_format(runtime& rt, const text& format, const call_args& args) {
  return brace_formatter(rt, format, args).run();
}

} // namespace twill::models::jinja
