#include "net/http/page_of_list.hpp"

#include "net/http/reply_head.hpp"

namespace twill::net {

std::string query_of(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const auto end = std::min(query.find('&'), query.size());
    const auto pair = query.substr(0, end);
    const auto equals = std::min(pair.find('='), pair.size());
    if (pair.substr(0, equals) == name)
      return percent_decode(pair.substr(std::min(equals + 1, pair.size())));
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  return {};
}

std::optional<std::size_t> page_limit(const http_request& request, std::size_t standard,
                                      std::size_t most) {
  const auto text = query_of(request.query, "limit");
  if (text.empty()) return standard;
  std::size_t limit = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), limit);
  if (error != std::errc{} || end != text.data() + text.size() || limit < 1 || limit > most)
    return std::nullopt;
  return limit;
}

} // namespace twill::net
