#include "tools/common/hub/hub_client.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <thread>
#include <utility>

namespace twill::tools::hub {
namespace {

using namespace std::chrono_literals;

constexpr int most_redirects = 10;
constexpr int usual_failures = 8;   ///< consecutive attempts without progress
constexpr int listing_failures = 4; ///< for listings, where nothing has been fetched yet
constexpr std::chrono::milliseconds first_wait = 200ms, longest_wait = 16s;
constexpr std::chrono::seconds longest_asked_wait = 120s;

/// The hub is busy or temporarily broken: the same request may succeed later.
class busy_error : public std::runtime_error {
public:
  busy_error(const std::string& what, std::chrono::seconds wait)
      : std::runtime_error(what), wait(wait) {}
  std::chrono::seconds wait; ///< the wait that the hub requested; 0: none
};

/// Thrown by a body callback to end a reply once all requested bytes have arrived.
struct enough_read {};

/// A connection that delivered this many bytes before it was lost counts as progress and resets the
/// count of failures.
constexpr std::int64_t worth_a_try = 64 << 10;

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

bool is_busy(int status) {
  return status == 408 || status == 429 || status >= 500;
}

std::int64_t number_of(std::string_view text) {
  std::int64_t number = -1;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  return fault == std::errc() && end == text.data() + text.size() ? number : -1;
}

/// Whether a Content-Range field such as "bytes 5-99/100" matches the request.
bool is_range(const std::string& field, std::int64_t begin, std::int64_t bytes) {
  const auto dash = field.find('-'), slash = field.find('/');
  if (!field.starts_with("bytes ") || dash == field.npos || slash == field.npos || slash < dash)
    return false;
  return number_of(std::string_view(field).substr(6, dash - 6)) == begin &&
         number_of(std::string_view(field).substr(slash + 1)) == bytes;
}

/// The error message that the hub sent in X-Error-Message. Its content is not trusted.
std::string words_of_hub(const http_reply_head& head) {
  constexpr std::size_t most_shown = 300;
  const auto& words = head.field("x-error-message");
  return words.empty() ? words : ", \"" + words.substr(0, most_shown) + "\"";
}

std::string page_of(const hub_settings& settings, const model_reference& named) {
  return settings.endpoint.text() + "/" + named.repository;
}

} // namespace

hub_client::hub_client(hub_settings settings, std::function<bool()> stopped,
                       std::function<void(const std::string&)> say)
    : settings_(std::move(settings)), say_(std::move(say)) {
  rules_.proxies = settings_.proxies;
  rules_.stopped = std::move(stopped);
}

url hub_client::route(const std::string& path) const {
  url to = settings_.endpoint;
  to.target += path;
  return to;
}

/// Sends a GET and follows redirects. `on_head` is called only for the final reply.
void hub_client::get(const url& address, const std::string& range, const head_handler& on_head,
                     const body_handler& on_body) {
  url at = address;
  for (int redirects = 0;; ++redirects) {
    http_request_head request{at, {}};
    // The hub redirects downloads of large files to a file store on another host, which must not
    // receive the access token. The redirect's address carries a signature instead.
    if (!settings_.token.empty() && at.has_origin_of(settings_.endpoint))
      request.fields["Authorization"] = "Bearer " + settings_.token;
    if (!range.empty()) request.fields["Range"] = range;
    std::string location;
    http_get(
        request, rules_,
        [&](const http_reply_head& head) {
          const bool elsewhere = !at.has_origin_of(settings_.endpoint);
          // A file store, the host to which the hub redirects downloads, refuses an address whose
          // signature has expired. A retry then starts at the hub, which gives a newly signed
          // address. The signature is in the query, so a redirect to an address without a query
          // leads to another hub and not to a file store.
          const bool is_store = elsewhere && at.target.find('?') != at.target.npos;
          if (is_store && head.status >= 400 && head.status < 500)
            throw busy_error(at.host + " answers with status " + std::to_string(head.status), 0s);
          if (!is_redirect(head.status)) return on_head(head);
          location = head.field("location");
          if (location.empty()) location = " ";
          return false;
        },
        on_body);
    if (location.empty()) return;
    const auto next = resolve(at, location);
    if (!next || (at.tls && !next->tls))
      throw client_error(at.authority() + " redirects to an address that is not followed: " +
                         location.substr(0, std::min<std::size_t>(location.find('?'), 200)));
    if (redirects == most_redirects)
      throw client_error(address.text() + " redirects more than " + std::to_string(most_redirects) +
                         " times");
    at = *next;
  }
}

/// Throws a client_error for a request that the hub refused. The hub names the reason of most
/// refusals in the header X-Error-Code.
void hub_client::refuse(const model_reference& named, const std::string& what,
                        const http_reply_head& head) const {
  const auto& code = head.field("x-error-code");
  const auto page = page_of(settings_, named);
  const std::string token =
      settings_.token.empty()
          ? "set HF_TOKEN to a token of yours (" + settings_.endpoint.text() + "/settings/tokens)"
          : "the token that was sent (HF_TOKEN, or the file that `hf auth login` writes) is wrong, "
            "has expired or may not read it";
  const auto status = " (status " + std::to_string(head.status) + words_of_hub(head) + ")";
  if (code == "GatedRepo")
    throw client_error(named.text() + ": the model is gated" + status + ": accept its licence on " +
                       page + ", then " +
                       (settings_.token.empty()
                            ? token
                            : "try again; the token that was sent must be of the account that "
                              "accepted it, and may read gated repositories"));
  if (code == "RevisionNotFound")
    throw client_error(named.text() + ": there is no revision \"" + named.revision + "\"" + status +
                       "; " + page + "/tree/main shows those that are there");
  if (code == "EntryNotFound")
    throw client_error(named.text() + ": the hub has no " + what + status);
  if (head.status == 401 || head.status == 404 || code == "RepoNotFound")
    throw client_error(named.text() + ": there is no such model, or it is private" + status +
                       ": look for it on " + page + "; for a private one, " + token);
  if (head.status == 403)
    throw client_error(named.text() + ": access is denied" + status + ": accept the licence on " +
                       page + ", and " + token);
  throw client_error(named.text() + ": the hub does not give " + what + status);
}

/// Calls `attempt` until it succeeds, or fails `most_failures` times in a row without progress.
/// `attempt` sets its argument to true once it has received enough bytes to count as progress.
template <class Attempt>
void hub_client::with_retries(const std::string& what, int most_failures, const Attempt& attempt) {
  std::chrono::milliseconds wait = first_wait;
  for (int failures = 0;;) {
    std::string why;
    std::chrono::milliseconds asked{0};
    bool progressed = false;
    try {
      attempt(progressed);
      return;
    } catch (const connection_error& error) {
      if (error.permanent) throw hub_unreachable(what + ": " + error.what());
      why = error.what();
    } catch (const busy_error& error) {
      why = error.what();
      asked = error.wait;
    }
    if (progressed) {
      failures = 0;
      wait = first_wait;
    }
    if (++failures == most_failures || asked > longest_asked_wait)
      throw hub_unreachable(
          what + ": " + why +
          "; look at the network, HTTPS_PROXY and HF_ENDPOINT, or try again later");
    const auto pause = std::max(wait, asked);
    wait = std::min(2 * wait, longest_wait);
    if (pause >= 1s) say_(why + "; trying again in " + std::to_string(pause.count() / 1000) + " s");
    const auto end = std::chrono::steady_clock::now() + pause;
    while (std::chrono::steady_clock::now() < end) {
      if (rules_.stopped && rules_.stopped()) throw stopped_error();
      std::this_thread::sleep_for(std::min<std::chrono::milliseconds>(100ms, pause));
    }
  }
}

namespace {

void check_status(const http_reply_head& head, const std::string& host) {
  if (!is_busy(head.status)) return;
  const auto asked = number_of(head.field("retry-after"));
  throw busy_error(host + " answers with status " + std::to_string(head.status) +
                       (head.status == 429 ? ": too many requests, HF_TOKEN raises the limit" : ""),
                   std::chrono::seconds(std::clamp<std::int64_t>(asked, 0, 3600)));
}

} // namespace

repo_listing hub_client::list(const model_reference& named, bool once) {
  const auto address = route("/api/models/" + percent_encoded(named.repository, true) +
                             "/revision/" + percent_encoded(named.revision, false) + "?blobs=true");
  std::string text;
  with_retries(named.text(), once ? 1 : listing_failures, [&](bool&) {
    text.clear();
    get(
        address, {},
        [&](const http_reply_head& head) {
          check_status(head, address.host);
          if (head.status != 200) refuse(named, "list of files", head);
          return true;
        },
        [&](std::string_view bytes) {
          text += bytes;
          if (text.size() > most_listing_bytes)
            throw client_error(named.text() + ": the hub's answer is longer than " +
                               std::to_string(most_listing_bytes) + " bytes");
        });
  });
  return parse_listing(text, named.text());
}

void hub_client::read(const model_reference& named, const std::string& commit,
                      const repo_file& file, std::int64_t begin, std::int64_t end,
                      const std::function<void(std::string_view)>& take) {
  const auto address = route("/" + percent_encoded(named.repository, true) + "/resolve/" + commit +
                             "/" + percent_encoded(file.path, true));
  std::int64_t at = begin;
  with_retries(named.text() + ": " + file.path, usual_failures, [&](bool& progressed) {
    std::int64_t skip = 0; // leading bytes of the reply that were already received
    std::int64_t taken = 0;
    const bool whole = at == 0 && end == file.bytes;
    try {
      get(
          address, whole ? "" : "bytes=" + std::to_string(at) + "-" + std::to_string(end - 1),
          [&](const http_reply_head& head) {
            check_status(head, address.host);
            if (head.status == 200) {
              skip = at;
              return true;
            }
            if (head.status == 206) {
              if (is_range(head.field("content-range"), at, file.bytes)) return true;
              throw client_error(named.text() + ": " + file.path + ": must have " +
                                 std::to_string(file.bytes) + " bytes, the hub's answer has \"" +
                                 head.field("content-range") + "\"");
            }
            refuse(named, file.path, head);
          },
          [&](std::string_view bytes) {
            const auto skipped =
                std::min<std::int64_t>(skip, static_cast<std::int64_t>(bytes.size()));
            skip -= skipped;
            bytes.remove_prefix(static_cast<std::size_t>(skipped));
            if (bytes.empty()) return;
            const bool longer = static_cast<std::int64_t>(bytes.size()) > end - at;
            bytes = bytes.substr(0, static_cast<std::size_t>(end - at));
            const auto n = static_cast<std::int64_t>(bytes.size());
            at += n;
            taken += n;
            progressed = taken >= worth_a_try;
            if (n > 0) take(bytes);
            if (longer) throw enough_read{};
          });
    } catch (const enough_read&) {
    }
    if (at < end) throw connection_error("the answer of " + address.host + " is too short");
  });
}

} // namespace twill::tools::hub
