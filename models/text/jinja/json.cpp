#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "models/text/jinja/print.hpp"

namespace twill::models::jinja {
namespace {

constexpr const char* hex = "0123456789abcdef";

void append_escape(std::string& out, unsigned unit) {
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4)
    out.push_back(hex[unit >> shift & 0xF]);
}

class json_writer {
public:
  json_writer(runtime& rt, const json_style& style) : rt_(rt), style_(style) {}

  void write(const val& v, std::size_t level) {
    const depth_guard guard(rt_);
    rt_.add_work(1 + (out.size() - charged_) / 64);
    charged_ = out.size();
    if (out.size() > (16u << 20)) rt_.charge_text(out.size());
    if (v.is_none())
      out += "null";
    else if (const auto* b = v.as_bool())
      out += *b ? "true" : "false";
    else if (const auto* i = v.as_int())
      out += std::to_string(*i);
    else if (const auto* big = v.as_big())
      out += big->digits;
    else if (const auto* d = v.as_double())
      out += number(*d);
    else if (const auto* t = v.as_text())
      write_string(*t);
    else if (const auto* l = v.as_list(); l && l->kind != list_data::generator)
      write_list(*l, level);
    else if (const auto* dict = v.as_dict())
      write_dict(*dict, level);
    else
      rt_.fail("Object of type " + type_name(v) + " is not JSON serializable");
  }

  std::string out;
  bool tainted = false;

private:
  static std::string number(double d) {
    if (std::isnan(d)) return "NaN";
    if (std::isinf(d)) return d < 0 ? "-Infinity" : "Infinity";
    return float_repr(d);
  }

  void write_string(const text& t) {
    tainted |= t.tainted();
    out.push_back('"');
    const std::string_view s = t.bytes;
    for (std::size_t i = 0, n = 1; i < s.size(); i += n) {
      const char32_t c = character_at(s, i, n);
      switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\b':
        out += "\\b";
        break;
      default:
        if (c < 0x20 || (c >= 0x80 && c < 0x10000 && style_.ensure_ascii)) {
          append_escape(out, static_cast<unsigned>(c));
        } else if (c >= 0x10000 && style_.ensure_ascii) {
          append_escape(out, static_cast<unsigned>(0xD800 + ((c - 0x10000) >> 10)));
          append_escape(out, static_cast<unsigned>(0xDC00 + ((c - 0x10000) & 0x3FF)));
        } else {
          out.append(s.substr(i, n));
        }
      }
    }
    out.push_back('"');
  }

  void new_line(std::size_t level) {
    if (!style_.indent) return;
    out.push_back('\n');
    for (std::size_t i = 0; i < level; ++i)
      out += *style_.indent;
  }

  void separate(bool first, std::size_t level) {
    if (!first) out += style_.item_separator;
    new_line(level + 1);
  }

  void write_list(const list_data& l, std::size_t level) {
    out.push_back('[');
    for (std::size_t i = 0; i < l.items.size(); ++i) {
      separate(i == 0, level);
      write(l.items[i], level + 1);
    }
    if (!l.items.empty()) new_line(level);
    out.push_back(']');
  }

  void write_key(const val& key) {
    if (const text* t = key.as_text()) return write_string(*t);
    if (!key.is_number() && !key.is_none())
      rt_.fail("keys must be str, int, float, bool or None, not " + type_name(key));
    out.push_back('"');
    write(key, 0);
    out.push_back('"');
  }

  void write_dict(const dict_data& d, std::size_t level) {
    std::vector<const std::pair<val, val>*> items;
    for (const auto& item : d.items)
      items.push_back(&item);
    if (style_.sort_keys)
      std::stable_sort(items.begin(), items.end(), [](const auto* a, const auto* b) {
        return compare(a->first, b->first).value_or(0) == -1;
      });
    out.push_back('{');
    bool first = true;
    for (const auto* item : items) {
      separate(first, level);
      first = false;
      write_key(item->first);
      out += style_.key_separator;
      write(item->second, level + 1);
    }
    if (!first) new_line(level);
    out.push_back('}');
  }

  runtime& rt_;
  const json_style& style_;
  std::size_t charged_ = 0;
};

} // namespace

text to_json(runtime& rt, const val& v, const json_style& style) {
  json_writer writer(rt, style);
  writer.write(v, 0);
  rt.charge_text(writer.out.size());
  return text(std::move(writer.out), writer.tainted);
}

} // namespace twill::models::jinja
