#include "net/tracing/otlp.hpp"

#include <algorithm>
#include <bit>
#include <string_view>

#include "net/protocol/json/utf8.hpp"

namespace twill::net {
namespace {

/// Appends the fields of one Protocol Buffers message. A nested message is encoded in an object of
/// its own, since its length comes before its bytes.
class message {
public:
  void varint(int field, std::uint64_t value) {
    tag(field, 0);
    put_varint(value);
  }
  void fixed64(int field, std::uint64_t value) {
    tag(field, 1);
    for (int shift = 0; shift < 64; shift += 8)
      out_ += static_cast<char>(value >> shift & 0xff);
  }
  void bytes(int field, std::string_view value) {
    tag(field, 2);
    put_varint(value.size());
    out_ += value;
  }
  void text(int field, std::string_view value) {
    if (find_invalid_utf8(value) == std::string_view::npos) return bytes(field, value);
    std::string mended;
    while (!value.empty()) {
      const auto n = utf8_sequence_length(value);
      mended += n > 0 ? value.substr(0, n) : std::string_view("?");
      value.remove_prefix(std::max<std::size_t>(n, 1));
    }
    bytes(field, mended);
  }
  template <std::size_t N>
  void id(int field, const std::array<std::uint8_t, N>& value) {
    bytes(field, {reinterpret_cast<const char*>(value.data()), N});
  }
  void nested(int field, const message& value) { bytes(field, value.out_); }
  std::string take() { return std::move(out_); }

private:
  void tag(int field, unsigned wire_type) {
    put_varint(static_cast<std::uint64_t>(field) << 3 | wire_type);
  }
  void put_varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7)
      out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
  }

  std::string out_;
};

message any_value(const attribute_value& value) {
  struct writer {
    message& to;
    void operator()(const std::string& text) const { to.text(1, text); }
    void operator()(bool flag) const { to.varint(2, flag ? 1 : 0); }
    void operator()(std::int64_t number) const { to.varint(3, static_cast<std::uint64_t>(number)); }
    void operator()(double number) const { to.fixed64(4, std::bit_cast<std::uint64_t>(number)); }
    void operator()(const std::vector<std::string>& texts) const {
      message array;
      for (const auto& text : texts) {
        message one;
        one.text(1, text);
        array.nested(1, one);
      }
      to.nested(5, array);
    }
  };
  message made;
  std::visit(writer{made}, value);
  return made;
}

void put_attributes(message& to, int field, const attributes& all) {
  for (const auto& [name, value] : all) {
    message pair;
    pair.text(1, name);
    pair.nested(2, any_value(value));
    to.nested(field, pair);
  }
}

message span_message(const span& from) {
  message made;
  made.id(1, from.trace);
  made.id(2, from.id);
  if (from.parent != span_id{}) made.id(4, from.parent);
  made.text(5, from.name);
  made.varint(6, static_cast<std::uint64_t>(from.kind));
  made.fixed64(7, from.start_unix_ns);
  made.fixed64(8, from.end_unix_ns);
  put_attributes(made, 9, from.about);
  if (from.failed) {
    message status;
    status.varint(3, 2); // STATUS_CODE_ERROR
    made.nested(15, status);
  }
  return made;
}

} // namespace

std::string export_request(const attributes& resource, const std::vector<span>& spans) {
  message about, scope, of_scope, of_resource, whole;
  put_attributes(about, 1, resource);
  scope.text(1, "twill");
  scope.text(2, TWILL_VERSION);
  of_scope.nested(1, scope);
  for (const auto& one : spans)
    of_scope.nested(2, span_message(one));
  of_resource.nested(1, about);
  of_resource.nested(2, of_scope);
  whole.nested(1, of_resource);
  return whole.take();
}

} // namespace twill::net
