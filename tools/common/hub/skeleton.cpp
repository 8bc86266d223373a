#include "tools/common/hub/skeleton.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>

#include "models/checkpoint/gguf/header_extent.hpp"
#include "models/decoder/check_weights.hpp"
#include "models/model.hpp"
#include "tools/common/hub/download.hpp"

namespace twill::tools::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t first_bytes = 1 << 20; ///< size of the first request, which mostly covers
                                              ///< the whole header
/// Upper limit on a weight file's header. Real headers, with vocabularies and lists of tensors,
/// take about ten MB.
constexpr std::int64_t most_header_bytes = std::int64_t{256} << 20;

/// The length of a safetensors header: a count in eight bytes, then as many bytes as the count
/// says.
std::int64_t extent_of_safetensors(std::string_view head) {
  std::uint64_t length = 0;
  std::memcpy(&length, head.data(), std::min(head.size(), sizeof length));
  return static_cast<std::int64_t>(
      std::min<std::uint64_t>(length, std::uint64_t{most_header_bytes}) + sizeof length);
}

std::int64_t extent_of_gguf(std::string_view head) {
  const auto extent = models::gguf::header_extent(std::as_bytes(std::span(head)));
  // A GGUF header consists of strings that each state their own length, so the full length is known
  // only at its end. Requesting four times the bytes so far keeps the number of requests small.
  const auto have = static_cast<std::uint64_t>(head.size());
  return extent <= have ? static_cast<std::int64_t>(have)
                        : static_cast<std::int64_t>(std::min<std::uint64_t>(
                              std::max(extent, 4 * have), most_header_bytes));
}

std::int64_t wanted_head(bool is_gguf, std::string_view head) {
  if (head.empty()) return first_bytes;
  return is_gguf ? extent_of_gguf(head) : extent_of_safetensors(head);
}

void make_link(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::create_directories(to.parent_path(), error);
  fs::create_symlink(fs::canonical(from), to, error);
  if (error) fs::copy_file(from, to, error);
  if (error) throw client_error("cannot write " + to.string() + ": " + error.message());
}

} // namespace

model_skeleton::model_skeleton(hub_client& client, const hub_cache& cache,
                               const model_reference& named, const std::string& commit,
                               const selection& files)
    : name_(named.text()), scratch_(cache.snapshot(commit).parent_path().parent_path()) {
  if (!scratch_.exists())
    throw client_error("cannot write to " + cache.root().string() +
                       ": set HF_HOME to a folder that this user may write");
  folder_ = scratch_.path() / "model";
  fs::create_directories(folder_);
  for (const auto& file : files.texts)
    make_link(cache.entry(commit, file), folder_ / file.path);
  for (const auto& file : files.weights) {
    const auto to = folder_ / file.path;
    if (cache.has(commit, file)) {
      make_link(cache.entry(commit, file), to);
    } else if (file.path.ends_with(".bin")) {
      has_weights_ = false;
    } else {
      fs::create_directories(to.parent_path());
      fetch_head(client, named, commit, file, to,
                 [&](std::string_view head) { return wanted_head(files.is_gguf, head); });
    }
  }
  if (files.is_gguf) first_ = files.weights.front().path;
}

std::string model_skeleton::path() const {
  return (first_.empty() ? folder_ : folder_ / first_).string();
}

std::string model_skeleton::in_words(const std::string& message) const {
  std::string words = message;
  const std::string place = folder_.string();
  const std::string whole = path();
  for (const auto& from : {whole, place})
    for (auto at = words.find(from); at != words.npos; at = words.find(from, at + name_.size()))
      words.replace(at, from.size(), name_);
  return words;
}

std::vector<std::string> faults_of_model(const std::string& path) {
  const auto opened = models::open_model(path);
  if (!opened.ok()) return {opened.detail()};
  std::vector<std::string> faults;
  for (auto& fault : models::check_weights(opened.value()->spec, *opened.value()->weights))
    faults.push_back(std::move(fault.detail));
  return faults;
}

} // namespace twill::tools::hub
