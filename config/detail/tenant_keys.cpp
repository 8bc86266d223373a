#include "config/detail/tenant_keys.hpp"

#include <algorithm>
#include <limits>

#include "config/detail/rules.hpp"

namespace twill::config::detail {
namespace {

constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();

#define TWILL_MEMBER(member) [](tenant_options& o) -> member_address { return &o.member; }

rule tenant_name() {
  return {tenant_name_words(),
          [](const key_value& v) { return is_tenant_name(std::get<std::string>(v)); }};
}

rule digests() {
  return {"64 lower-case hex digits, or a list of such digests", [](const key_value& v) {
            const auto& list = std::get<std::vector<std::string>>(v);
            return std::all_of(list.begin(), list.end(), is_digest);
          }};
}

const std::vector<tenant_key>& tenant_rows() {
  static const std::vector<tenant_key> table{
      // clang-format off
      {"tenants.name", TWILL_MEMBER(name), "", tenant_name(),
       "The name of the tenant, in logs and metrics. Files and batches belong to it."},
      {"tenants.key_sha256", TWILL_MEMBER(key_sha256), "", digests(),
       "The SHA-256 digests of its API keys. `twill key new NAME` makes a key and prints this line. "
       "Further keys may stand in `server.keys_file`.", true, true},
      {"tenants.weight", TWILL_MEMBER(weight), "", between(1, 1000),
       "Its share where `scheduler.policy` is fair: of two tenants that wait, one of weight 3 gets "
       "three times the tokens of one of weight 1."},
      {"tenants.max_running", TWILL_MEMBER(max_running), "sequences", between(0, 65536),
       "The most of its sequences that run at once; further ones wait, and others pass them. 0 sets "
       "no limit beside `scheduler.max_running`."},
      {"tenants.max_queued", TWILL_MEMBER(max_queued), "requests", between(0, 1'000'000),
       "The most of its requests that wait. Further ones are refused with status 429. 0 sets no limit "
       "beside `scheduler.max_queued`."},
      {"tenants.tokens_per_minute", TWILL_MEMBER(tokens_per_minute), "tokens", between(0, most),
       "The tokens of prompts and outputs that it may use in a minute. A request counts with its "
       "prompt and its `max_tokens` (256 where it names none) when it arrives, and gets back at its "
       "end what it did not use. Further ones are refused with status 429 and the time to wait. 0 "
       "sets no limit."},
      {"tenants.models", TWILL_MEMBER(models), "", list_of_words(),
       "The ids of the models that it may use; others are not shown to it. When empty, it may use all."},
      {"tenants.admin", TWILL_MEMBER(admin), "", either(),
       "Whether its keys may use the routes of administrators."},
      // clang-format on
  };
  return table;
}

#undef TWILL_MEMBER

} // namespace

std::span<const tenant_key> tenant_keys() {
  return tenant_rows();
}

bool is_digest(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

} // namespace twill::config::detail
