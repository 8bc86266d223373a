#include "net/batch/batch_folder.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>
#include <system_error>
#include <tuple>
#include <unistd.h>

#include "config/base/log.hpp"
#include "net/batch/batch_description.hpp"
#include "net/batch/private_file.hpp"

namespace twill::net {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view described = ".batch";
constexpr std::string_view unfinished = ".batch.new";
/// By how much a description may grow: ids of files, counts, and the fault if the disk fails.
constexpr std::size_t reserved_growth = 1024;

fs::path unfinished_path(fs::path description) {
  return description += ".new";
}

/// Returns all bytes of a file. Returns nothing, with errno set, if reading fails or the file is
/// too large.
std::optional<std::string> bytes_of(const descriptor& from) {
  std::string text(max_batch_description_bytes + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const auto n = ::read(from.get(), text.data() + size, text.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return std::nullopt;
    if (n == 0) break;
    size += static_cast<std::size_t>(n);
  }
  if (size > max_batch_description_bytes) {
    errno = EFBIG;
    return std::nullopt;
  }
  text.resize(size);
  return text;
}

/// Collects the file ids in a damaged description of a batch, so that the files are kept until the
/// administrator has looked at the description.
void find_file_ids(std::string_view text, std::set<std::string>& to) {
  constexpr std::string_view prefix = "file-";
  for (auto at = text.find(prefix); at != text.npos; at = text.find(prefix, at + 1)) {
    auto end = text.find('"', at);
    if (end == text.npos) end = text.size();
    if (const auto id = text.substr(at, end - at); is_id(id, prefix)) to.emplace(id);
  }
}

/// Replaces a description. Returns false, with errno set, on failure.
bool replace(const fs::path& path, std::string_view text) {
  const auto temporary = unfinished_path(path);
  auto file = open_to_write(temporary);
  if (file.get() < 0 && errno == ENOENT) file = create_private(temporary);
  return file.get() >= 0 && write_whole(file, text) &&
         ::rename(temporary.c_str(), path.c_str()) == 0;
}

/// Reserves disk space for the next version of the batch description in `path`. If this fails, the
/// next version can be written only while the disk has free space.
void reserve(const fs::path& path, std::size_t bytes) {
  const auto file = create_private(unfinished_path(path));
  if (file.get() >= 0) write_at(file, std::string(bytes, ' '), 0);
}

void remove_both(const fs::path& path) {
  std::error_code ignored;
  fs::remove(path, ignored);
  fs::remove(unfinished_path(path), ignored);
}

} // namespace

batch_folder::contents batch_folder::open() {
  contents found;
  found.files.emplace();
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    const auto name = entry.path().filename().string();
    std::error_code ignored;
    if (!name.starts_with("batch_")) continue;
    if (name.ends_with(unfinished)) fs::remove(entry.path(), ignored);
    if (name.ends_with(described)) read(entry.path(), found);
  }
  if (error) found.files.reset();
  std::sort(found.batches.begin(), found.batches.end(), [](const batch& a, const batch& b) {
    return std::tie(a.number, a.id) < std::tie(b.number, b.id);
  });
  open_ = true;
  return found;
}

void batch_folder::read(const fs::path& path, contents& to) const {
  const auto warn = [&](const std::string& why) {
    log::warn("the batch of the file " + path.string() + " is left out: " + why +
              "; repair or remove the file and start again");
  };
  const auto file = open_to_read(path);
  const auto text = file.get() < 0 ? std::nullopt : bytes_of(file);
  if (!text) {
    warn(std::strerror(errno));
    return to.files.reset();
  }
  auto one = read_description(*text);
  std::string why;
  if (!one.ok())
    why = one.code().message;
  else if (path_of(one.value().id) != path)
    why = "`id` must be the name of the file without " + std::string(described) + ", got \"" +
          one.value().id + "\"";
  if (!why.empty()) {
    if (to.files) find_file_ids(*text, *to.files);
    return warn(why);
  }
  auto& batch = one.value();
  if (is_final(batch.status)) {
    batch.output_under_way.clear();
    batch.errors_under_way.clear();
  }
  for (const auto& id : {batch.output_under_way, batch.errors_under_way})
    if (!id.empty() && to.files && !to.files->insert(id).second)
      return warn("another batch writes to " + id + " as well");
  to.batches.push_back(std::move(batch));
}

result<nothing> batch_folder::save(const batch_table& from, const std::string& id) {
  if (!open_) return nothing{};
  const std::lock_guard lock(mutex_);
  const auto path = path_of(id);
  const auto current = from.get(id);
  if (!current) {
    remove_both(path);
    return nothing{};
  }
  const auto text = describe_batch(*current);
  if (text.size() > max_batch_description_bytes) return fail(describe_failure(EFBIG));
  if (!replace(path, text)) return fail(describe_failure(errno));
  if (!is_final(current->status)) reserve(path, text.size() + reserved_growth);
  return nothing{};
}

void batch_folder::save_or_warn(const batch_table& from, const std::string& id) {
  const auto saved = save(from, id);
  if (!saved.ok()) log::warn(id + ": " + saved.code().message);
}

} // namespace twill::net
