// listing: the files of a repository at one commit, parsed from the hub's reply to GET
// /api/models/ID/revision/REV?blobs=true. The functions are pure. The reply may be hostile, so file
// names that could lead outside a folder are refused, and so are impossible sizes and counts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace twill::tools::hub {

inline constexpr std::int64_t most_listing_bytes = std::int64_t{32} << 20;

struct repo_file {
  std::string path; ///< relative; is_safe_path() is true of it
  std::int64_t bytes = 0;
  std::string sha256; ///< set for files in Git LFS, otherwise empty
  std::string git_id; ///< SHA-1 of the git blob; empty when `sha256` is set

  /// The name of the file's blob in the cache, equal to the ETag that the hub sends.
  const std::string& etag() const { return sha256.empty() ? git_id : sha256; }
};

struct repo_listing {
  std::string commit; ///< 40 hexadecimal digits
  std::vector<repo_file> files;

  const repo_file* find(std::string_view path) const;
};

/// Parses the hub's reply. Throws client_error, whose message begins with `where`, when the text is
/// no valid listing.
repo_listing parse_listing(std::string_view json, const std::string& where);

/// Whether the text consists of exactly `digits` lower-case hexadecimal digits.
bool is_hex(std::string_view text, std::size_t digits);

} // namespace twill::tools::hub
