#include "tools/twill-bench/protocols/body.hpp"

#include <array>
#include <cstdio>

namespace twill::bench {

std::string quote_json(std::string_view text) {
  std::string out = "\"";
  out.reserve(text.size() + 8);
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\u%04x", static_cast<unsigned>(c));
      out += escape.data();
    } else {
      out += c;
    }
  }
  out += '"';
  return out;
}

void body_writer::key(std::string_view name) {
  if (out_.size() > 1) out_ += ',';
  out_ += '"';
  out_ += name;
  out_ += "\":";
}

body_writer& body_writer::raw(std::string_view name, std::string_view json) {
  key(name);
  out_ += json;
  return *this;
}

body_writer& body_writer::text(std::string_view name, std::string_view value) {
  return raw(name, quote_json(value));
}

body_writer& body_writer::number(std::string_view name, double value) {
  std::array<char, 32> digits{};
  const int n = std::snprintf(digits.data(), digits.size(), "%.17g", value);
  return raw(name, {digits.data(), static_cast<std::size_t>(n)});
}

body_writer& body_writer::integer(std::string_view name, std::int64_t value) {
  return raw(name, std::to_string(value));
}

body_writer& body_writer::boolean(std::string_view name, bool value) {
  return raw(name, value ? "true" : "false");
}

body_writer& body_writer::ids(std::string_view name, const std::vector<std::int32_t>& values) {
  key(name);
  out_ += '[';
  out_.reserve(out_.size() + values.size() * 7);
  std::array<char, 12> digits{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out_ += ',';
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), values[i]).ptr;
    out_.append(digits.data(), end);
  }
  out_ += ']';
  return *this;
}

body_writer& body_writer::merge(std::string_view json_object) {
  const std::size_t open = json_object.find('{');
  const std::size_t close = json_object.rfind('}');
  if (open == std::string_view::npos || close <= open) return *this;
  const std::string_view members = json_object.substr(open + 1, close - open - 1);
  if (members.find_first_not_of(" \t\r\n") == std::string_view::npos) return *this;
  if (out_.size() > 1) out_ += ',';
  out_ += members;
  return *this;
}

body_writer& body_writer::sampling(const serve_options& options) {
  if (options.temperature) number("temperature", *options.temperature);
  if (options.top_p) number("top_p", *options.top_p);
  if (options.top_k) integer("top_k", *options.top_k);
  if (options.ignore_eos) boolean("ignore_eos", true);
  return merge(options.extra_body);
}

std::string body_writer::finish() {
  out_ += '}';
  return std::move(out_);
}

} // namespace twill::bench
