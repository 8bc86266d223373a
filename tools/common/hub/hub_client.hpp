// hub_client: requests file listings and ranges of bytes from Hugging Face's hub. It follows
// redirects, sends the access token only to the hub's own origin, retries after lost connections
// and while the hub is busy, and turns refusals of the hub into error messages that say what the
// user can do.
//
// Calls block. Only one thread at a time may use a client. Calls throw client_error, or its
// subclass hub_unreachable when only the network or the state of the hub is at fault. They throw
// stopped_error when the `stopped` callback returned true.
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

/// The hub cannot be reached now. Files that are already in the cache can be used without it.
class hub_unreachable : public client_error {
  using client_error::client_error;
};

class hub_client {
public:
  /// `say` receives a line for the user before each retry that waits a second or more.
  hub_client(hub_settings settings, std::function<bool()> stopped,
             std::function<void(const std::string&)> say);

  const hub_settings& settings() const { return settings_; }

  /// Returns the files at the reference's revision. With `once` there is no retry when the hub
  /// cannot be reached; this is for callers that can use the cache instead.
  repo_listing list(const model_reference& named, bool once = false);

  /// Reads bytes [begin, end) of a file and passes them to `take` in order and each exactly once,
  /// even if a lost connection makes several requests necessary.
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
