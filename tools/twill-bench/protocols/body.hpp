// body: writes the JSON object of a request, member by member, without building a tree.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/twill-bench/engine/options.hpp"

namespace twill::bench {

class body_writer {
public:
  body_writer& text(std::string_view key, std::string_view value);
  body_writer& number(std::string_view key, double value);
  body_writer& integer(std::string_view key, std::int64_t value);
  body_writer& boolean(std::string_view key, bool value);
  body_writer& ids(std::string_view key, const std::vector<std::int32_t>& values);
  body_writer& raw(std::string_view key, std::string_view json);
  /// Appends the members of `json_object`.
  body_writer& merge(std::string_view json_object);
  /// Appends temperature, top_p, top_k and ignore_eos under vLLM's names, then the members of
  /// --extra-body.
  body_writer& sampling(const serve_options& options);
  std::string finish();

private:
  void key(std::string_view name);
  std::string out_ = "{";
};

std::string quote_json(std::string_view text);

} // namespace twill::bench
