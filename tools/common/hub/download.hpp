// download: fetches one file of a Hugging Face repository into the cache, or only the first bytes
// of it into another file.
//
// When a download ends early, the bytes fetched so far stay in blobs/ETAG.incomplete, and the next
// download of the file continues after them. A file becomes blobs/ETAG only after its hash has been
// verified. The functions throw what hub_client throws, and client_error when the disk is full or
// cannot be written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "tools/common/hub/hub_cache.hpp"
#include "tools/common/hub/hub_client.hpp"

namespace twill::tools::hub {

/// The callbacks that a download makes while it works.
struct download_events {
  std::function<void(std::int64_t bytes)> fetched;  ///< called for every piece; a negative count
                                                    ///< takes back bytes that were discarded
  std::function<void(const std::string& line)> say; ///< writes a line for the user
  std::function<bool()> stopped;                    ///< polled a few times per second; true ends
                                                    ///< the download; may be null
};

/// Fetches the file into the cache's snapshot folder of `commit`. Does nothing when that folder
/// already has the file.
void download(hub_client& client, const hub_cache& cache, const model_reference& named,
              const std::string& commit, const repo_file& file, const download_events& events);

/// Makes `to` a sparse file as long as `file` that holds only the first bytes of it; the rest is a
/// hole, which takes no disk space. `enough` receives the bytes fetched so far and returns how many
/// bytes from the start of the file it needs. It is called again after those bytes have been
/// fetched, until it needs no more.
void fetch_head(hub_client& client, const model_reference& named, const std::string& commit,
                const repo_file& file, const std::filesystem::path& to,
                const std::function<std::int64_t(std::string_view head)>& enough);

} // namespace twill::tools::hub
