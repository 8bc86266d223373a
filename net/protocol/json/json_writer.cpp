#include "net/protocol/json/json_writer.hpp"

#include <charconv>
#include <cmath>
#include <type_traits>
#include <variant>

#include "config/base/float_text.hpp"
#include "net/protocol/json/utf8.hpp"

namespace twill::net {
namespace {

void append_escape(std::string& out, unsigned char c) {
  switch (c) {
  case '"':
    out += "\\\"";
    return;
  case '\\':
    out += "\\\\";
    return;
  case '\n':
    out += "\\n";
    return;
  case '\r':
    out += "\\r";
    return;
  case '\t':
    out += "\\t";
    return;
  default:
    static constexpr char digits[] = "0123456789abcdef";
    out += "\\u00";
    out += digits[c >> 4];
    out += digits[c & 15];
  }
}

template <class Number>
void append_number(std::string& out, Number number) {
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, number).ptr;
  out.append(text, end);
}

} // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  std::size_t plain = 0; // start of the bytes that can be copied without change
  std::size_t i = 0;
  while (i < text.size()) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c < 0x80 && c != '"' && c != '\\') {
      ++i;
      continue;
    }
    const auto length = c < 0x80 ? 0 : utf8_sequence_length(text.substr(i));
    if (length > 0) {
      i += length;
      continue;
    }
    out.append(text.substr(plain, i - plain));
    if (c < 0x80)
      append_escape(out, c);
    else
      out += "\xEF\xBF\xBD";
    plain = ++i;
  }
  out.append(text.substr(plain));
  out += '"';
}

json_writer& json_writer::add_integer(std::int64_t number) {
  comma();
  append_number(out_, number);
  return *this;
}

json_writer& json_writer::add(double number) {
  if (!std::isfinite(number)) return raw("null");
  comma();
  append_number(out_, number);
  return *this;
}

json_writer& json_writer::add(float number) {
  if (!std::isfinite(number)) return raw("null");
  comma();
  append_number(out_, number);
  return *this;
}

json_writer& json_writer::add(const value& tree) {
  std::visit(
      [this](const auto& v) {
        using kind = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<kind, value_list>) {
          begin_array();
          for (const auto& entry : v)
            add(entry);
          end_array();
        } else if constexpr (std::is_same_v<kind, value_object>) {
          begin_object();
          for (const auto& [name, member] : v) {
            comma();
            append_json_string(out_, name);
            out_ += ':';
            need_comma_ = false;
            add(member);
          }
          end_object();
        } else if constexpr (std::is_same_v<kind, big_integer>) {
          raw(v.digits);
        } else if constexpr (std::is_same_v<kind, double>) {
          // Writes 1.0 as 1.0 and not as 1, since a reader may distinguish the two.
          raw(std::isfinite(v) ? float_text(v) : "null");
        } else {
          add(v);
        }
      },
      tree.data());
  return *this;
}

std::string json_text(const value& tree) {
  std::string out;
  json_writer(out).add(tree);
  return out;
}

std::string describe(const value& tree, std::size_t max_chars) {
  std::string out;
  if (const auto* text = tree.as_string(); text != nullptr && text->size() > max_chars)
    append_json_string(out, std::string_view(*text).substr(0, max_chars));
  else if (const auto* list = tree.as_list(); list != nullptr && list->size() > max_chars)
    return "a list of " + std::to_string(list->size()) + " entries";
  else
    json_writer(out).add(tree);
  if (out.size() <= max_chars) return out;
  std::size_t cut = max_chars;
  while (cut > 0 && (static_cast<unsigned char>(out[cut]) & 0xC0) == 0x80)
    --cut; // do not cut within a UTF-8 character
  return out.substr(0, cut) + "...";
}

} // namespace twill::net
