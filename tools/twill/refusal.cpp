#include "tools/twill/refusal.hpp"

#include <boost/json/parse.hpp>

#include <chrono>

namespace twill::tools {
namespace {

constexpr int unauthorized = 401;

} // namespace

std::string why_no_access(const endpoint& where) {
  return where.url() +
         (where.api_key.empty()
              ? " wants an API key, and none was given"
              : " does not know the API key that TWILL_API_KEY or --api-key gave") +
         "; set the variable TWILL_API_KEY to one of its keys, or give --api-key KEY. Who runs the "
         "daemon makes keys with `twill key new`";
}

std::string why_refused(const endpoint& where, int status, std::string_view body) {
  if (status == unauthorized) return why_no_access(where);
  boost::system::error_code bad;
  const auto parsed = boost::json::parse(body, bad);
  const auto* why = bad ? nullptr : parsed.find_pointer("/error/message", bad);
  return why != nullptr && why->is_string()
             ? std::string(why->get_string())
             : where.url() + " answered with status " + std::to_string(status);
}

std::unique_ptr<ws_client> open_socket(const endpoint& where, const std::string& path) {
  try {
    return std::make_unique<ws_client>(where, path, std::chrono::seconds(10));
  } catch (const ws_refused& refused) {
    throw client_error(why_refused(where, refused.status, refused.body));
  }
}

} // namespace twill::tools
