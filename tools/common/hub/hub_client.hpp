// hub_client: asks the hub for listings and for bytes of files. It follows redirects, sends the
// token to the hub's own origin alone, tries again after cuts and where the hub is busy, and turns
// what the hub refuses into sentences that say what to do.
//
// Calls block; one thread at a time. Throws client_error, hub_unreachable where only the network or
// the hub's health is at fault, and stopped_error.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "tools/common/endpoint.hpp"
#include "tools/common/hub/http_get.hpp"
#include "tools/common/hub/listing.hpp"
#include "tools/common/hub/reference.hpp"
#include "tools/common/hub/settings.hpp"

namespace twill::tools::hub {

/// The hub cannot be asked now; files that are in the cache can be used without it.
class hub_unreachable : public client_error {
  using client_error::client_error;
};

class hub_client {
public:
  /// `say` gets a line for each wait before another try.
  hub_client(hub_settings settings, std::function<bool()> stopped,
             std::function<void(const std::string&)> say);

  const hub_settings& settings() const { return settings_; }

  /// The files at the reference's revision. With `once` the hub is not asked again where it cannot
  /// be reached, for callers who can do without.
  repo_listing list(const model_reference& named, bool once = false);

  /// Bytes [begin, end) of a file, handed to `take` in order, across as many connections as it
  /// takes; each byte comes once.
  void read(const model_reference& named, const std::string& commit, const repo_file& file,
            std::int64_t begin, std::int64_t end,
            const std::function<void(std::string_view)>& take);

private:
  void get(const url& address, const std::string& range, const head_handler& on_head,
           const body_handler& on_body);
  [[noreturn]] void refuse(const model_reference& named, const std::string& what,
                           const http_reply_head& head) const;
  template <class Attempt>
  void with_retries(const std::string& what, int most_failures, const Attempt& attempt);
  url route(const std::string& path) const;

  hub_settings settings_;
  http_rules rules_;
  std::function<void(const std::string&)> say_;
};

} // namespace twill::tools::hub
