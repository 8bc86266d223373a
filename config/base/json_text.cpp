#include "config/base/json_text.hpp"

#include <cmath>
#include <cstdint>
#include <variant>

#include "config/base/float_text.hpp"

namespace twill {
namespace {

class text_writer {
public:
  explicit text_writer(int indent) : indent_(indent) {}

  void write(const value& v, int depth) {
    std::visit([&](const auto& x) { write_one(x, depth); }, v.data());
  }
  std::string take() { return std::move(out_); }

private:
  void write_one(std::nullptr_t, int) { out_ += "null"; }
  void write_one(bool b, int) { out_ += b ? "true" : "false"; }
  void write_one(std::int64_t i, int) { out_ += std::to_string(i); }

  void write_one(const big_integer& i, int) { out_ += i.digits; }

  void write_one(double d, int) {
    out_ += std::isfinite(d) ? float_text(d) : "null"; // JSON has no infinities
  }

  void write_one(const std::string& text, int) {
    out_ += '"';
    for (const char c : text) {
      if (c == '"' || c == '\\') {
        out_ += '\\';
        out_ += c;
      } else if (c == '\n') {
        out_ += "\\n";
      } else if (static_cast<unsigned char>(c) < 0x20) {
        constexpr char hex[] = "0123456789abcdef";
        out_ += "\\u00";
        out_ += hex[static_cast<unsigned char>(c) >> 4];
        out_ += hex[c & 15];
      } else {
        out_ += c;
      }
    }
    out_ += '"';
  }

  void write_one(const value_list& list, int depth) {
    out_ += '[';
    for (std::size_t i = 0; i < list.size(); ++i) {
      separate(i > 0, depth + 1);
      write(list[i], depth + 1);
    }
    close(list.empty(), depth, ']');
  }

  void write_one(const value_object& object, int depth) {
    out_ += '{';
    for (std::size_t i = 0; i < object.size(); ++i) {
      separate(i > 0, depth + 1);
      write_one(object[i].first, depth);
      out_ += indent_ > 0 ? ": " : ":";
      write(object[i].second, depth + 1);
    }
    close(object.empty(), depth, '}');
  }

  void separate(bool comma, int depth) {
    if (comma) out_ += ',';
    new_line(depth);
  }
  void close(bool empty, int depth, char bracket) {
    if (!empty) new_line(depth);
    out_ += bracket;
  }
  void new_line(int depth) {
    if (indent_ == 0) return;
    out_ += '\n';
    out_.append(static_cast<std::size_t>(depth * indent_), ' ');
  }

  int indent_;
  std::string out_;
};

} // namespace

std::string to_json(const value& v, int indent) {
  text_writer w(indent);
  w.write(v, 0);
  return w.take();
}

} // namespace twill
