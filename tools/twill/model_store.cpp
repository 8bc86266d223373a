#include "tools/twill/model_store.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>

#include "config/base/units.hpp"
#include "models/checkpoint/gguf/split_name.hpp"
#include "models/model.hpp"
#include "tools/common/default_model.hpp"
#include "tools/common/progress_bar.hpp"
#include "tools/common/scratch_folder.hpp"
#include "tools/common/subprocess.hpp"
#include "tools/common/terminal.hpp"
#include "tools/twill/interrupt.hpp"
#include "tools/twill/must.hpp"

namespace twill::tools {
namespace {

namespace fs = std::filesystem;

struct source_file {
  fs::path from;
  fs::path to; ///< path below the model's folder; empty: the model is a single file
  std::int64_t bytes = 0;
};

bool is_address(const std::string& source) {
  return source.starts_with("https://") || source.starts_with("http://");
}

void stop_if_interrupted() {
  if (interrupts() > 0) throw client_error("interrupted; nothing was kept");
}

[[noreturn]] void cannot(const std::string& what, const fs::path& path, int why) {
  throw client_error("cannot " + what + " " + path.string() + ": " + std::strerror(why));
}

class descriptor {
public:
  descriptor(const fs::path& path, int flags)
      : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

private:
  int fd_;
};

/// Flushes the file to disk, so that after a crash the later rename never shows an incomplete file.
void settle(const fs::path& path) {
  const descriptor file(path, O_RDONLY);
  if (file.get() < 0 || ::fsync(file.get()) != 0) cannot("write", path, errno);
}

void copy_file(const fs::path& from, const fs::path& to, std::int64_t& done, std::int64_t total,
               progress_bar& bar) {
  const descriptor in(from, O_RDONLY);
  if (in.get() < 0) cannot("read", from, errno);
  const descriptor out(to, O_WRONLY | O_CREAT | O_EXCL);
  if (out.get() < 0) cannot("write", to, errno);
  const auto chunk = std::make_unique<char[]>(1 << 20);
  for (;;) {
    stop_if_interrupted();
    const auto n = ::read(in.get(), chunk.get(), 1 << 20);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) cannot("read", from, errno);
    if (n == 0) return;
    for (ssize_t written = 0; written < n;) {
      const auto w =
          ::write(out.get(), chunk.get() + written, static_cast<std::size_t>(n - written));
      if (w < 0 && errno == EINTR) continue;
      if (w < 0) cannot("write", to, errno);
      written += w;
    }
    done += n;
    bar.show(done, total);
  }
}

/// The files of a model. Symbolic links are followed, because Hugging Face's cache consists of
/// links. Hidden files and anything but regular files are skipped.
std::vector<source_file> files_of(const fs::path& model) {
  std::error_code error;
  if (fs::is_regular_file(model, error))
    return {{model, {}, static_cast<std::int64_t>(fs::file_size(model, error))}};
  std::vector<source_file> files;
  fs::recursive_directory_iterator entries(model, error);
  if (error) throw client_error(model.string() + " cannot be read: " + error.message());
  for (const auto& entry : entries) {
    const auto name = entry.path().lexically_relative(model);
    const bool hidden = std::any_of(name.begin(), name.end(), [](const fs::path& part) {
      return part.string().starts_with('.');
    });
    if (hidden || !entry.is_regular_file(error)) continue;
    files.push_back({entry.path(), name, static_cast<std::int64_t>(entry.file_size(error))});
  }
  return files;
}

using models::gguf::split_name;

/// Parses the name of one part of a GGUF model that is split into several files; returns nothing
/// for other names.
std::optional<split_name> part_named(const std::string& file_name) {
  auto part = models::gguf::parse_split_name(file_name);
  return part && part->count > 1 ? part : std::nullopt;
}

std::vector<source_file> parts_of(const split_name& model, const fs::path& folder) {
  std::vector<source_file> files;
  for (int number = 1; number <= model.count; ++number) {
    const auto from = folder / model.of_part(number);
    std::error_code error;
    files.push_back({from, from.filename(), static_cast<std::int64_t>(fs::file_size(from, error))});
  }
  return files;
}

void check_room(const fs::path& folder, std::int64_t bytes) {
  std::error_code error;
  const auto space = fs::space(folder, error);
  if (error || static_cast<std::int64_t>(space.available) > bytes) return;
  throw client_error(folder.string() + " has " +
                     format_bytes(static_cast<std::int64_t>(space.available)) +
                     " of free space, but the model takes " + format_bytes(bytes));
}

/// The last part of the path of an address, without the text from '?' or '#' on.
std::string name_in(const std::string& address) {
  const auto path = address.substr(0, address.find_first_of("?#"));
  return path.substr(path.rfind('/') + 1);
}

void check_name(const std::string& name, const std::string& source) {
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return c > 0x20 && c != 0x7f && c != '/' && c != '\\' && c != '%';
  });
  if (!name.empty() && name.size() <= 200 && name.front() != '.' && name.front() != '-' && plain)
    return;
  throw client_error(
      "a model's name must be at most 200 characters without spaces, '%' and '/', and not "
      "begin with '.' or '-', got \"" +
      name + "\" in " + source);
}

void download(const std::string& address, const fs::path& to) {
  const bool safe = address.starts_with("https://");
  std::vector<std::string> command{
      "curl",         "--fail",      "--location",        "--globoff",
      "--proto",      "=https,http", "--proto-redir",     safe ? "=https" : "=https,http",
      "--retry",      "3",           "--connect-timeout", "20",
      "--speed-time", "60",          "--speed-limit",     "1",
      "--output",     to.string()};
  if (is_terminal(stream::error))
    command.emplace_back("--progress-bar");
  else
    command.insert(command.end(), {"--silent", "--show-error"});
  command.push_back(address);
  const int status = run_to_stderr(command);
  stop_if_interrupted();
  if (status == 127)
    throw client_error("downloads need the program curl: install the package curl");
  if (status != 0)
    throw client_error("curl could not download " + address + " (exit status " +
                       std::to_string(status) + "); its own words are above");
}

/// The address with the last part of its path replaced by `name`.
std::string with_name(const std::string& address, const std::string& name) {
  const auto end = std::min(address.find_first_of("?#"), address.size());
  return address.substr(0, address.rfind('/', end) + 1) + name + address.substr(end);
}

/// Downloads all files of the model at an address into `made`, which becomes a folder if the model
/// has several parts.
void download_model(const std::string& source, const std::optional<split_name>& parts,
                    const fs::path& made) {
  if (!parts) {
    download(source, made);
    return;
  }
  fs::create_directory(made);
  for (int number = 1; number <= parts->count; ++number) {
    const auto name = parts->of_part(number);
    download(with_name(source, name), made / name);
    settle(made / name);
  }
}

/// Opens the model, because a truncated or unsupported file would otherwise be noticed only when it
/// is served.
void check_opens(const fs::path& model, const std::string& source) {
  const auto opened = models::open_model(model.string());
  if (!opened.ok())
    throw client_error(source +
                       " is no model that twilld can serve, and was not kept: " + opened.detail());
}

void check_sum(const fs::path& file, const std::string& wanted, const std::string& source) {
  if (wanted.empty()) return;
  const auto got = sha256_of(file);
  std::string expected = wanted;
  std::transform(expected.begin(), expected.end(), expected.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (got != expected)
    throw client_error(source + " must have the SHA-256 " + wanted + ", got " + got +
                       "; it was not kept");
}

std::int64_t bytes_of(const fs::path& model) {
  std::int64_t bytes = 0;
  for (const auto& file : files_of(model))
    bytes += file.bytes;
  return bytes;
}

} // namespace

std::string sha256_of(const fs::path& file) {
  const auto ran = run_and_read({"sha256sum", "--", file.string()});
  // For a file name that contains a backslash, sha256sum begins its output with a backslash.
  const std::size_t begin = ran.text.starts_with('\\') ? 1 : 0;
  if (ran.status != 0 || ran.text.size() < begin + 64)
    throw client_error("sha256sum could not read " + file.string());
  return ran.text.substr(begin, 64);
}

std::vector<stored_model> model_store::list() const {
  std::vector<stored_model> models;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    const auto name = entry.path().filename().string();
    if (name.starts_with('.')) continue;
    const bool model = entry.is_directory(error) || entry.path().extension() == ".gguf";
    if (model) models.push_back({name, bytes_of(entry.path())});
  }
  std::sort(models.begin(), models.end(),
            [](const stored_model& a, const stored_model& b) { return a.name < b.name; });
  return models;
}

fs::path model_store::place_for(const std::string& name) const {
  auto place = folder_ / name;
  std::error_code error;
  if (fs::exists(fs::symlink_status(place, error)))
    throw client_error(name + " is in " + folder_.string() + " already; `twill models rm " + name +
                       "` removes it");
  fs::create_directories(folder_, error);
  return place;
}

std::string model_store::pull(const std::string& source, const std::string& sha256) const {
  const bool remote = is_address(source);
  fs::path local = fs::path(source).lexically_normal();
  if (!local.has_filename()) local = local.parent_path();
  const auto file_name = remote ? name_in(source) : local.filename().string();
  std::error_code error;
  const bool folder = !remote && fs::is_directory(local, error);
  const auto parts = folder ? std::nullopt : part_named(file_name);
  const auto name = parts ? parts->prefix : file_name;
  check_name(name, source);
  if (!remote && !folder && !fs::is_regular_file(local, error))
    throw client_error(
        "the model must be the path of a GGUF file or of a folder, a model of Hugging Face's hub "
        "(ORG/NAME), an http or https address, or the word default, got " +
        source);
  if (!folder && !file_name.ends_with(".gguf"))
    throw client_error("a model of one file must be a GGUF file whose name ends in .gguf, got " +
                       source);
  if ((folder || parts) && !sha256.empty())
    throw client_error("`--sha256` must come with one file, got a model of several, " + source);
  if (!remote) check_opens(local, source); // before large amounts of data are copied
  const auto place = place_for(name);
  const scratch_folder scratch(folder_);
  if (!scratch.exists())
    throw client_error("cannot write to " + folder_.string() +
                       "; set TWILL_MODELS to a folder of yours");

  const auto made = scratch.path() / name;
  if (remote) {
    download_model(source, parts, made);
    check_sum(made, sha256, source);
    settle(made);
  } else {
    const auto files = parts ? parts_of(*parts, local.parent_path()) : files_of(local);
    std::int64_t total = 0, done = 0;
    for (const auto& file : files)
      total += file.bytes;
    check_room(folder_, total);
    progress_bar bar(false);
    for (const auto& file : files) {
      const auto to = file.to.empty() ? made : made / file.to;
      fs::create_directories(to.parent_path(), error);
      copy_file(file.from, to, done, total, bar);
      settle(to);
    }
    bar.finish(true);
    check_sum(made, sha256, source);
  }
  check_opens(made, source);
  stop_if_interrupted();
  fs::rename(made, place, error);
  if (error)
    throw client_error("cannot move the model to " + place.string() + ": " + error.message());
  return place.string();
}

std::string model_store::pull_default() const {
  const auto place = folder_ / default_model_file;
  std::error_code error;
  if (fs::exists(place, error)) return place.string();
  const auto cached = default_model_path();
  if (cached.ok() && fs::exists(cached.value(), error))
    return pull(cached.value(), default_model_sha256);
  const auto fetched = must(fetch_default_model_into(folder_)).value();
  check_sum(fetched, default_model_sha256, "the default model");
  return fetched;
}

bool model_store::remove(const std::string& name) const {
  // Only listed models are removed, so no name can address a file outside the folder.
  for (const auto& one : list()) {
    if (one.name != name && one.name != name + ".gguf") continue;
    std::error_code error;
    fs::remove_all(folder_ / one.name, error); // removes only the link if the model is a symbolic
                                               // link
    if (error)
      throw client_error("cannot remove " + (folder_ / one.name).string() + ": " + error.message());
    return true;
  }
  return false;
}

} // namespace twill::tools
