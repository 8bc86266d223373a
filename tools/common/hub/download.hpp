// download: one file of the hub into the cache, or its first bytes into another file.
//
// What was fetched stays as blobs/ETAG.incomplete when a download ends early, and the next one goes
// on behind it. A content takes its place only after its hash was found right. Throws as hub_client
// does, and client_error for a disk that is full or cannot be written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "tools/common/hub/hub_cache.hpp"
#include "tools/common/hub/hub_client.hpp"

namespace twill::tools::hub {

/// What a download tells while it works.
struct download_events {
  std::function<void(std::int64_t bytes)> fetched;  ///< for every piece; negative: thrown away
  std::function<void(const std::string& line)> say; ///< a line for the user
  std::function<bool()> stopped;                    ///< asked a few times in a second; may be null
};

/// Puts the file into the snapshot of that commit, unless it is there.
void download(hub_client& client, const hub_cache& cache, const model_reference& named,
              const std::string& commit, const repo_file& file, const download_events& events);

/// Makes `to` a file that is as long as the real one and has its first bytes, as many of them as
/// `enough` wants; the rest is a hole, which takes no room. `enough` gets what has come and answers
/// up to which byte it must see the file; it is asked again once that has come.
void fetch_head(hub_client& client, const model_reference& named, const std::string& commit,
                const repo_file& file, const std::filesystem::path& to,
                const std::function<std::int64_t(std::string_view head)>& enough);

} // namespace twill::tools::hub
