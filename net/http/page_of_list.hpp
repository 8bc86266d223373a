// page_of_list: makes one page of a list as OpenAI's routes do. The query has `limit`, `order` and
// `after`; the reply is {"object":"list","data":[...],"first_id","last_id","has_more"}. The
// functions are pure.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/http/http_types.hpp"
#include "net/protocol/json/json_writer.hpp"

namespace twill::net {

/// The value of a query parameter, percent-decoded; empty when it is absent.
std::string query_of(std::string_view query, std::string_view name);

/// Parses the query parameter `limit`; `standard` is its default. Returns nullopt if it is not a
/// number from 1 to `most`.
std::optional<std::size_t> page_limit(const http_request& request, std::size_t standard,
                                      std::size_t most);

/// Returns one page of `all`, which must be sorted with the oldest entry first. The page is sorted
/// with the newest entry first, unless `order` is "asc", and begins after the entry whose id is
/// `after`. An entry has a member `id`; `to_json` formats an entry.
template <class Entry, class ToJson>
http_reply page_of_list(const http_request& request, std::vector<Entry> all, std::size_t standard,
                        std::size_t most, ToJson to_json) {
  const auto limit = page_limit(request, standard, most);
  if (!limit)
    return error_reply({errc::invalid_field,
                        "`limit` must be from 1 to " + std::to_string(most) + ", got " +
                            describe(value(query_of(request.query, "limit"))),
                        "limit"});
  if (query_of(request.query, "order") != "asc") std::reverse(all.begin(), all.end());
  const auto after = query_of(request.query, "after");
  auto from = all.begin();
  if (!after.empty()) {
    from = std::find_if(all.begin(), all.end(), [&](const Entry& one) { return one.id == after; });
    if (from == all.end())
      return error_reply(
          {errc::invalid_field,
           "`after` must be the id of an entry of this list, got " + describe(value(after)),
           "after"});
    ++from;
  }
  const auto left = static_cast<std::size_t>(all.end() - from);
  const auto end = from + static_cast<std::ptrdiff_t>(std::min(*limit, left));
  std::string out;
  json_writer json(out);
  json.begin_object().field("object", "list").key("data").begin_array();
  for (auto one = from; one != end; ++one)
    json.raw(to_json(*one));
  json.end_array();
  if (from != end)
    json.field("first_id", from->id).field("last_id", std::prev(end)->id);
  else
    json.field("first_id", nullptr).field("last_id", nullptr);
  json.field("has_more", left > *limit).end_object();
  return http_reply{200, std::move(out)};
}

} // namespace twill::net
