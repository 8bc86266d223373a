#include "tools/common/hub/pull.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "config/base/read_file.hpp"
#include "config/base/units.hpp"
#include "models/checkpoint/folder.hpp"
#include "models/checkpoint/json.hpp"
#include "models/families/registry.hpp"
#include "models/open/folder_text.hpp"
#include "tools/common/hub/download.hpp"
#include "tools/common/hub/hub_cache.hpp"
#include "tools/common/hub/hub_client.hpp"
#include "tools/common/hub/select.hpp"
#include "tools/common/hub/skeleton.hpp"

namespace twill::tools::hub {
namespace {

namespace fs = std::filesystem;

/// limit on the total size of all small files
constexpr std::int64_t most_text_bytes = std::int64_t{512} << 20;
constexpr std::size_t most_texts = 200, most_weights = 2000; ///< limits on the number of files

std::string text_of(const fs::path& path) {
  const auto text = read_file(path.string(), std::int64_t{64} << 20);
  if (!text.ok()) throw client_error(text.detail());
  return text.value();
}

pulled_model found_at(const hub_cache& cache, const std::string& commit, const selection& files) {
  if (!files.is_gguf) return {cache.snapshot(commit).string(), {}};
  const auto& first = files.weights.front();
  return {cache.entry(commit, first).string(),
          files.weights.size() == 1 ? first.sha256 : std::string()};
}

/// Checks the model's family, so that a family that twill cannot run is refused before any weight
/// header is fetched.
std::vector<std::string> faults_of_config(const std::string& folder) {
  const auto config = models::read_json_file(folder + "/config.json", std::int64_t{16} << 20);
  if (!config.ok()) return {config.detail()};
  const auto family = models::families::family_of(config.value());
  if (!family.ok()) return {family.detail()};
  return {};
}

/// Checks the tokenizer of a folder whose weights cannot be checked before they are fetched.
std::vector<std::string> faults_of_tokenizer(const std::string& folder) {
  const auto text = models::open_folder_tokenizer(folder);
  if (!text.ok()) return {text.detail()};
  return {};
}

[[noreturn]] void refuse_model(const model_reference& named,
                               const std::vector<std::string>& faults) {
  constexpr std::size_t most_shown = 4;
  std::string why;
  for (std::size_t i = 0; i < std::min(faults.size(), most_shown); ++i)
    why += (i == 0 ? "" : "\n  ") + faults[i];
  if (faults.size() > most_shown)
    why += "\n  and " + std::to_string(faults.size() - most_shown) + " more reasons";
  throw client_error(named.text() + " cannot be served, so its weights were not fetched: " + why);
}

class pull_operation {
public:
  pull_operation(const model_reference& named, const pull_events& events)
      : named_(named), events_(events), settings_(settings_of_environment()),
        client_(settings_, events.stopped,
                [&events](const std::string& line) { events.say(line); }),
        cache_(settings_.cache, named.repository) {
    transfer_.stopped = events_.stopped;
    transfer_.say = events_.say;
    transfer_.fetched = [this](std::int64_t bytes) {
      done_ += bytes;
      events_.progress(done_, total_);
    };
  }

  pulled_model run() {
    choose();
    const auto model = found_at(cache_, commit_, chosen_);
    if (events_.chosen) events_.chosen(model);
    const auto files = all_files();
    if (find_absent(files)) {
      check_room(); // before anything is fetched, and before the skeleton makes sparse files of
                    // full length
      judge();
      announce();
      fetch(files);
      const auto faults = faults_of_model(model.path);
      if (!faults.empty()) refuse_fetched(faults);
    }
    note_revision();
    return model;
  }

  /// Returns the model if the cache has all the files that the hub lists for it.
  std::optional<pulled_model> find_whole() {
    choose();
    count(all_files());
    if (!absent_.empty()) return std::nullopt;
    return found_at(cache_, commit_, chosen_);
  }

  /// To be called after find_whole() has returned nothing: some files of the model are absent.
  std::unique_ptr<model_skeleton> make_skeleton() {
    cache_.prepare(commit_, chosen_.weights.front());
    auto skeleton = std::make_unique<model_skeleton>(client_, cache_, named_, commit_, chosen_);
    if (!skeleton->has_weights())
      throw client_error(named_.text() +
                         ": the weights are in PyTorch's format, whose headers are spread over the "
                         "files, so they must be here first: run `twill models pull " +
                         named_.text() + "`");
    return skeleton;
  }

private:
  /// Fetches the list of files and chooses the files that the model needs. Afterwards configuration
  /// and tokenizer are in the cache's snapshot folder.
  void choose() {
    // When the cache has the model, the hub is asked only once, so that an unreachable hub causes
    // no delay.
    const auto listing = client_.list(named_, find_in_cache(named_).has_value());
    commit_ = listing.commit;
    chosen_ = choose_files(listing, named_);
    std::int64_t bytes = 0;
    for (const auto& file : chosen_.texts)
      bytes += file.bytes;
    if (chosen_.texts.size() > most_texts)
      throw client_error(named_.text() + ": configuration and tokenizer must be at most " +
                         std::to_string(most_texts) + " files, got " +
                         std::to_string(chosen_.texts.size()));
    if (bytes > most_text_bytes)
      throw client_error(named_.text() + ": configuration and tokenizer must be at most " +
                         format_bytes(most_text_bytes) + ", got " + format_bytes(bytes));
    fetch(chosen_.texts);
    if (!chosen_.is_gguf) {
      const auto* index = index_of(listing);
      chosen_.weights = choose_weights(
          listing, index == nullptr ? std::string() : text_of(cache_.entry(commit_, *index)),
          named_);
    }
    if (chosen_.weights.size() > most_weights)
      throw client_error(named_.text() + ": the weights must be at most " +
                         std::to_string(most_weights) + " files, got " +
                         std::to_string(chosen_.weights.size()));
  }

  std::vector<repo_file> all_files() const {
    auto files = chosen_.texts;
    files.insert(files.end(), chosen_.weights.begin(), chosen_.weights.end());
    return files;
  }

  void judge() {
    if (!chosen_.is_gguf)
      if (const auto faults = faults_of_config(cache_.snapshot(commit_).string()); !faults.empty())
        refuse_model(named_, faults);
    if (absent_.size() > 4)
      events_.say("reading the headers of " + std::to_string(absent_.size()) + " files");
    cache_.prepare(commit_, chosen_.weights.front()); // makes the folders in which the skeleton is
                                                      // created
    const model_skeleton skeleton(client_, cache_, named_, commit_, chosen_);
    const auto faults = skeleton.has_weights() ? faults_of_model(skeleton.path())
                                               : faults_of_tokenizer(skeleton.path());
    std::vector<std::string> words;
    for (const auto& fault : faults)
      words.push_back(skeleton.in_words(fault));
    if (!words.empty()) refuse_model(named_, words);
  }

  /// Finds which of the files are absent and how many bytes they have. A file whose contents are in
  /// the cache's blobs/ folder already is only linked into the snapshot folder of the commit.
  void count(const std::vector<repo_file>& files) {
    absent_.clear();
    done_ = total_ = begun_ = 0;
    for (const auto& file : files) {
      if (cache_.has(commit_, file)) continue;
      if (cache_.has_blob(file)) {
        cache_.link(commit_, file); // the blob was fetched for another commit
        continue;
      }
      absent_.push_back(file);
      const auto here = std::min(cache_.bytes_begun(file), file.bytes);
      begun_ += here;
      total_ += file.bytes - here;
    }
  }

  /// Whether any of `files` must be fetched.
  bool find_absent(const std::vector<repo_file>& files) {
    count(files);
    if (absent_.empty() || std::exchange(has_begun_, true) || !events_.begins)
      return !absent_.empty();
    events_.begins(); // may wait for other processes, which may fetch the same files meanwhile
    count(files);
    return !absent_.empty();
  }

  /// Fetches those of `files` that the cache does not have.
  void fetch(const std::vector<repo_file>& files) {
    if (!find_absent(files)) return;
    check_room();
    for (const auto& file : absent_)
      download(client_, cache_, named_, commit_, file, transfer_);
  }

  void announce() const {
    if (total_ == 0) return;
    events_.say("fetching " + named_.text() + ": " + format_bytes(total_) + " in " +
                std::to_string(absent_.size()) + (absent_.size() == 1 ? " file" : " files") +
                (begun_ > 0 ? ", behind " + format_bytes(begun_) + " of an earlier try" : "") +
                ", into " + settings_.cache.string());
  }

  /// Checks the free disk space. The cache folder need not exist yet, so its nearest existing
  /// parent is examined.
  void check_room() const {
    auto folder = settings_.cache;
    std::error_code error;
    while (!fs::exists(folder, error) && folder.has_relative_path())
      folder = folder.parent_path();
    const auto space = fs::space(folder, error);
    if (error || static_cast<std::int64_t>(space.available) >= total_) return;
    throw client_error(settings_.cache.string() + " has " +
                       format_bytes(static_cast<std::int64_t>(space.available)) +
                       " of free space, but " + named_.text() + " takes " + format_bytes(total_) +
                       " more: free some room, or set HF_HOME to a folder on another disk");
  }

  [[noreturn]] void refuse_fetched(const std::vector<std::string>& faults) const {
    throw client_error(named_.text() + " was fetched, but cannot be served: " + faults.front());
  }

  /// Records in the cache to which commit the branch or tag refers, so that other programs find the
  /// model by that name. A failure does not matter, because the model's files are complete.
  void note_revision() const {
    try {
      cache_.note_revision(named_.revision, commit_);
    } catch (const client_error&) {
    }
  }

  const model_reference& named_;
  const pull_events& events_;
  hub_settings settings_;
  hub_client client_;
  hub_cache cache_;
  download_events transfer_;
  std::string commit_;
  selection chosen_;
  std::vector<repo_file> absent_; ///< those of the files last passed to count()
  std::int64_t done_ = 0, total_ = 0, begun_ = 0;
  bool has_begun_ = false;
};

class whole_model final : public model_preview {
public:
  explicit whole_model(std::string path) : path_(std::move(path)) {}
  std::string path() const override { return path_; }
  std::string in_words(const std::string& message) const override { return message; }

private:
  std::string path_;
};

class headers_alone final : public model_preview {
public:
  explicit headers_alone(std::unique_ptr<model_skeleton> skeleton)
      : skeleton_(std::move(skeleton)) {}
  std::string path() const override { return skeleton_->path(); }
  std::string in_words(const std::string& message) const override {
    return skeleton_->in_words(message);
  }

private:
  std::unique_ptr<model_skeleton> skeleton_;
};

[[noreturn]] void not_in_cache(const model_reference& named) {
  throw client_error(named.text() + " is not in " + cache_of_environment().string() +
                     ", and HF_HUB_OFFLINE forbids to ask the hub: unset it, or set HF_HOME to the "
                     "folder that has the model");
}

} // namespace

std::optional<pulled_model> find_in_cache(const model_reference& named) {
  const auto root = cache_of_environment();
  if (root.empty()) return std::nullopt;
  const hub_cache cache(root, named.repository);
  const auto commit = cache.commit_of(named.revision);
  if (!commit) return std::nullopt;
  const auto listing = cache.list(*commit);
  try {
    auto files = choose_files(listing, named);
    if (!files.is_gguf) {
      const auto* index = index_of(listing);
      files.weights = choose_weights(
          listing, index == nullptr ? std::string() : text_of(cache.entry(*commit, *index)), named);
    }
    return found_at(cache, *commit, files);
  } catch (const client_error&) {
    return std::nullopt; // a file of the model is missing
  }
}

pulled_model pull(const model_reference& named, const pull_events& events) {
  const auto taken = [&events](pulled_model found) {
    if (events.chosen) events.chosen(found);
    return found;
  };
  if (settings_of_environment().offline) {
    if (auto found = find_in_cache(named)) return taken(std::move(*found));
    not_in_cache(named);
  }
  try {
    return pull_operation(named, events).run();
  } catch (const hub_unreachable& error) {
    auto found = find_in_cache(named);
    if (!found) throw;
    events.say(std::string(error.what()) + "; the model of the cache is used");
    return taken(std::move(*found));
  }
}

std::unique_ptr<model_preview> preview(const model_reference& named, const pull_events& events) {
  if (!settings_of_environment().offline) {
    try {
      // The hub is asked even when the cache has the model. The cache may have only some of the
      // repository's files, and a choice among only these could differ from the choice among all
      // files.
      pull_operation operation(named, events);
      if (auto whole = operation.find_whole()) return std::make_unique<whole_model>(whole->path);
      return std::make_unique<headers_alone>(operation.make_skeleton());
    } catch (const hub_unreachable&) {
      if (!find_in_cache(named)) throw;
    }
  }
  if (auto found = find_in_cache(named)) return std::make_unique<whole_model>(found->path);
  not_in_cache(named);
}

} // namespace twill::tools::hub
