#include "tools/common/hub/listing.hpp"

#include <algorithm>
#include <set>

#include "models/checkpoint/json.hpp"
#include "tools/common/endpoint.hpp"
#include "tools/common/hub/reference.hpp"

namespace twill::tools::hub {
namespace {

constexpr std::size_t most_files = 100'000;
constexpr std::int64_t most_file_bytes = std::int64_t{1} << 46; // 64 TiB

std::string text_of(const value* v) {
  const auto* text = v == nullptr ? nullptr : v->as_string();
  return text == nullptr ? std::string() : *text;
}

std::int64_t count_of(const value* v) {
  const auto* count = v == nullptr ? nullptr : v->as_int();
  return count == nullptr ? -1 : *count;
}

[[noreturn]] void refuse_listing(const std::string& where, const std::string& what) {
  throw client_error(where + ": the hub's answer is not understood: " + what +
                     "; if HF_ENDPOINT names a mirror, it must answer as huggingface.co does");
}

repo_file file_of(const value& entry, const std::string& where) {
  repo_file file;
  file.path = text_of(entry.find("rfilename"));
  if (!is_safe_path(file.path))
    refuse_listing(where, "a file's name must be a relative path without \"..\", got \"" +
                              file.path + "\"");
  const value* lfs = entry.find("lfs");
  if (lfs != nullptr && lfs->as_object() != nullptr) {
    file.sha256 = text_of(lfs->find("sha256"));
    file.bytes = count_of(lfs->find("size"));
  } else {
    file.git_id = text_of(entry.find("blobId"));
    file.bytes = count_of(entry.find("size"));
  }
  if (file.bytes < 0 || file.bytes > most_file_bytes)
    refuse_listing(where, "it must tell the size of " + file.path);
  if (!is_hex(file.sha256, 64) && !(file.sha256.empty() && is_hex(file.git_id, 40)))
    refuse_listing(where, "it must tell the hash of " + file.path);
  return file;
}

} // namespace

bool is_hex(std::string_view text, std::size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

const repo_file* repo_listing::find(std::string_view path) const {
  const auto found =
      std::find_if(files.begin(), files.end(), [&](const repo_file& f) { return f.path == path; });
  return found == files.end() ? nullptr : &*found;
}

repo_listing parse_listing(std::string_view json, const std::string& where) {
  const auto parsed = models::parse_json(json, where);
  if (!parsed.ok()) refuse_listing(where, parsed.detail());
  repo_listing listing;
  listing.commit = text_of(parsed.value().find("sha"));
  if (!is_hex(listing.commit, 40)) refuse_listing(where, "`sha` must be a commit");
  const value* siblings = parsed.value().find("siblings");
  const auto* list = siblings == nullptr ? nullptr : siblings->as_list();
  if (list == nullptr || list->size() > most_files)
    refuse_listing(where,
                   "`siblings` must be a list of at most " + std::to_string(most_files) + " files");
  std::set<std::string> seen;
  for (const value& entry : *list) {
    listing.files.push_back(file_of(entry, where));
    if (!seen.insert(listing.files.back().path).second)
      refuse_listing(where, "the file " + listing.files.back().path + " is listed twice");
  }
  return listing;
}

} // namespace twill::tools::hub
