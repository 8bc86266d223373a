// listing: the files of a repository at one commit, as the hub's route /api/models/ID/revision/REV
// with ?blobs=true answers. Pure. Every text of the server may be hostile: names that could leave a
// folder are refused, as are sizes and counts that nobody has.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace twill::tools::hub {

inline constexpr std::int64_t most_listing_bytes = std::int64_t{32} << 20;

struct repo_file {
  std::string path; ///< is_safe_path()
  std::int64_t bytes = 0;
  std::string sha256; ///< of files in Git LFS; empty for others
  std::string git_id; ///< SHA-1 of a git blob; empty when sha256 is given

  /// Names the content in the cache, as the hub's ETag does.
  const std::string& etag() const { return sha256.empty() ? git_id : sha256; }
};

struct repo_listing {
  std::string commit; ///< 40 hexadecimal digits
  std::vector<repo_file> files;

  const repo_file* find(std::string_view path) const;
};

/// Throws client_error, with `where` in front, for what is no such answer.
repo_listing parse_listing(std::string_view json, const std::string& where);

/// Whether the text consists of so many lower-case hexadecimal digits.
bool is_hex(std::string_view text, std::size_t digits);

} // namespace twill::tools::hub
