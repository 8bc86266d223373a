// Common parts of the tests of stored responses.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/stored/stored_folder.hpp"
#include "tests/catch.hpp"

namespace twill::net {

inline bool operator==(const stored_bytes& a, const stored_bytes& b) {
  return a.id == b.id && a.head == b.head && a.records == b.records;
}

} // namespace twill::net

namespace twill::testing {

/// An empty folder, removed at the end.
class scratch_folder {
public:
  scratch_folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "twill-stored-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;
  ~scratch_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

private:
  std::filesystem::path path_;
};

inline std::unique_ptr<net::stored_folder>
open_folder(const std::filesystem::path& path, net::stored_folder::contents* found = nullptr,
            net::stored_folder::sync how = net::stored_folder::sync::never,
            net::file_ops& ops = net::system_files()) {
  net::stored_folder::contents ignored;
  auto opened = net::stored_folder::open(path, how, found == nullptr ? ignored : *found, ops);
  if (!opened.ok()) FAIL(opened.code());
  return std::move(opened).value();
}

inline std::error_code try_begin(net::stored_folder& folder, const std::string& id,
                                 const std::string& head) {
  return folder.append({{{&id, &head}}, {}});
}

inline void begin(net::stored_folder& folder, const std::string& id, const std::string& head) {
  REQUIRE_FALSE(try_begin(folder, id, head));
}

inline std::error_code add(net::stored_folder& folder,
                           const std::vector<std::pair<std::string, std::string>>& records) {
  net::stored_folder::step what;
  for (const auto& [id, record] : records)
    what.records.push_back({&id, &record});
  return folder.append(what);
}

/// The number of bytes of all files in a folder.
inline std::int64_t bytes_in(const std::filesystem::path& folder) {
  std::int64_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder))
    bytes += static_cast<std::int64_t>(file.file_size());
  return bytes;
}

} // namespace twill::testing
