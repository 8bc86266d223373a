#include "models/checkpoint/json.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/checkpoint/mapped_file.hpp"
#include "models/checkpoint/python_numbers.hpp"

namespace twill::models {
namespace {

/// Builds a tree of values from the parser's events. The open containers are an explicit stack.
class builder final : public nlohmann::json_sax<nlohmann::json> {
public:
  builder() = default;
  /// `nulls` says for each null of the text, in order, which number replaces it, if any.
  explicit builder(std::vector<std::optional<double>> nulls) : nulls_(std::move(nulls)) {}

  value take() { return std::move(root_); }
  std::size_t error_byte() const { return error_byte_; }
  const std::string& error() const { return error_; }

  bool null() override {
    const auto number = n_nulls_ < nulls_.size() ? nulls_[n_nulls_] : std::nullopt;
    ++n_nulls_;
    return put(number ? value(*number) : value());
  }
  bool boolean(bool b) override { return put(value(b)); }
  bool number_integer(number_integer_t i) override { return put(value(std::int64_t{i})); }
  bool number_unsigned(number_unsigned_t u) override {
    if (u > static_cast<number_unsigned_t>(INT64_MAX))
      return put(value::whole_number(std::to_string(u)));
    return put(value(static_cast<std::int64_t>(u)));
  }
  bool number_float(number_float_t d, const string_t& text) override {
    // The parser also reports integers beyond 64 bits as floats.
    if (text.find_first_of(".eE") == string_t::npos) return put(value::whole_number(text));
    return put(value(d));
  }
  bool string(string_t& s) override { return put(value(std::move(s))); }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override { return open(true); }
  bool start_array(std::size_t) override { return open(false); }
  bool key(string_t& k) override {
    open_.back().members.emplace_back(std::move(k), value());
    return true;
  }
  bool end_object() override {
    value_object members = std::move(open_.back().members);
    open_.pop_back();
    merge_repeated_keys(members);
    return put(value(std::move(members)));
  }
  bool end_array() override {
    value_list items = std::move(open_.back().items);
    open_.pop_back();
    return put(value(std::move(items)));
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& e) override {
    error_byte_ = position;
    // The parser's message is "[json.exception.parse_error.101] parse error at line 1, column 2:
    // syntax error ...". Only the part after the position is kept, because parse_json() adds the
    // position in twill's own format.
    const std::string what = e.what();
    const std::size_t place = what.find(": ");
    error_ = place == std::string::npos ? what : what.substr(place + 2);
    return false;
  }

private:
  struct container {
    bool is_object;
    value_list items;
    value_object members;
  };

  bool open(bool is_object) {
    if (open_.size() >= static_cast<std::size_t>(max_json_depth)) {
      error_ = "nested deeper than " + std::to_string(max_json_depth) + " levels";
      return false;
    }
    open_.push_back({is_object, {}, {}});
    return true;
  }

  bool put(value v) {
    if (open_.empty())
      root_ = std::move(v);
    else if (open_.back().is_object)
      open_.back().members.back().second = std::move(v);
    else
      open_.back().items.push_back(std::move(v));
    return true;
  }

  value root_;
  std::vector<container> open_;
  std::vector<std::optional<double>> nulls_;
  std::size_t n_nulls_ = 0;
  std::size_t error_byte_ = 0;
  std::string error_;
};

} // namespace

namespace {

/// Returns "WHERE:LINE" for the byte at index `at`.
std::string line_at(std::string_view text, const std::string& where, std::size_t at) {
  const std::string_view before = text.substr(0, at);
  return where + ":" + std::to_string(1 + std::count(before.begin(), before.end(), '\n'));
}

result<value> parse(std::string_view text, const std::string& where, builder& events) {
  // The parser takes a NUL for the end of the text, and would ignore everything after the NUL.
  if (const auto nul = text.find('\0'); nul != std::string_view::npos)
    return failure{errc::bad_format, line_at(text, where, nul) + ": a NUL is in no JSON text"};
  if (nlohmann::json::sax_parse(text.begin(), text.end(), &events)) return events.take();
  const std::string place =
      events.error_byte() > 0 ? line_at(text, where, events.error_byte() - 1) : where;
  return failure{errc::bad_format, place + ": " + events.error()};
}

} // namespace

result<value> parse_json(std::string_view text, const std::string& where) {
  builder events;
  return parse(text, where, events);
}

result<value> read_json_file(const std::string& path, std::int64_t max_bytes,
                             std::shared_ptr<const mapped_file>* read) {
  auto mapping = mapped_file::open(path);
  if (!mapping.ok()) return mapping.error();
  if (read != nullptr) *read = mapping.value();
  const auto bytes = mapping.value()->bytes();
  if (bytes.size() > static_cast<std::uint64_t>(max_bytes))
    return failure{errc::bad_format, path + ": must be at most " + std::to_string(max_bytes) +
                                         " bytes, got " + std::to_string(bytes.size())};
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  auto parsed = parse_json(text, path);
  if (parsed.ok()) return parsed;
  auto replaced = replace_python_numbers(text);
  if (!replaced) return parsed;
  builder events(std::move(replaced->nulls));
  return parse(replaced->text, path, events);
}

} // namespace twill::models
