#include "net/batch/file_store.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <iterator>
#include <set>
#include <stdexcept>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "config/base/log.hpp"
#include "net/protocol/json/json_parse.hpp"
#include "net/protocol/json/json_writer.hpp"
#include "net/random_id.hpp"
#include "net/server_name.hpp"

namespace twill::net {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t max_files = 10'000;
constexpr std::int64_t max_description_bytes = 64 * 1024;
/// The disk space in bytes that is reserved for a file's description when the file is created. The
/// description is a JSON text with the file's name, purpose and tenant. Output files of batches
/// have short names, so their descriptions fit.
constexpr std::size_t reserved_description = 512;

std::int64_t now_unix_s() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

fs::path description_path(fs::path file) {
  return file += ".json";
}

std::string description_json(const stored_file& file) {
  std::string out;
  json_writer json(out);
  json.begin_object().field("filename", file.filename).field("purpose", file.purpose);
  json.field("tenant", file.tenant).field("created_at", file.created_unix_s).end_object();
  return out;
}

std::string text_member(const value& v, std::string_view name) {
  const auto* member = v.find(name);
  return member != nullptr && member->as_string() != nullptr ? *member->as_string() : std::string();
}

constexpr std::string_view temporary_prefix = "twill-batches-";
constexpr const char* lock_name = ".lock";

/// Locks a folder. Returns -1 if another process holds the lock. The lock ends with the process.
descriptor try_lock(const fs::path& folder) {
  descriptor lock(
      ::open((folder / lock_name).c_str(), O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (lock.get() >= 0 && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return descriptor();
  return lock;
}

/// Removes temporary folders of this user that killed daemons have left.
void remove_orphans(const fs::path& where) {
  std::error_code error;
  for (const auto& found : fs::directory_iterator(where, error)) {
    if (!found.path().filename().string().starts_with(temporary_prefix)) continue;
    struct stat status {};
    if (::lstat(found.path().c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
        status.st_uid != ::geteuid())
      continue;
    const descriptor lock = try_lock(found.path());
    std::error_code ignored;
    if (lock.get() >= 0) fs::remove_all(found.path(), ignored);
  }
}

constexpr const char* bytes_of_files = "bytes of files";

std::string share_name(const std::string& what, const std::string& tenant) {
  return what + (tenant.empty() ? " without a tenant" : " of tenant " + tenant);
}

failure<api_error> full(const std::string& why) {
  return fail({errc::storage_full, why, ""});
}

} // namespace

api_error no_such_file(const std::string& id, const std::string& server_name) {
  return {errc::unknown_file,
          describe_absent(file_ids, id, server_name, "GET /v1/files lists yours"), ""};
}

file_store::file_store(std::string folder, std::int64_t max_bytes, std::function<double()> share,
                       std::string server_name, const under_way& find_under_way)
    : folder_(std::move(folder)), temporary_(folder_.empty()), max_bytes_(max_bytes),
      share_(std::move(share)), server_name_(std::move(server_name)) {
  std::error_code error;
  if (temporary_) {
    if (const auto where = fs::temp_directory_path(error); !error) remove_orphans(where);
    return;
  }
  if (fs::create_directories(folder_, error)) fs::permissions(folder_, fs::perms::owner_all, error);
  if (!fs::is_directory(folder_, error))
    throw std::runtime_error("`batches.folder` must be a folder that can be used, got " +
                             folder_.string());
  lock_ = try_lock(folder_);
  load(find_under_way);
}

file_store::~file_store() {
  std::error_code ignored;
  if (temporary_ && !folder_.empty()) fs::remove_all(folder_, ignored);
}

/// Finds the files of earlier runs. If the description "file-....json" of a file "file-..." is
/// missing, the file was never published. Such a file is removed if no other daemon uses the
/// folder, unless a batch will continue it.
void file_store::load(const under_way& find_under_way) {
  std::error_code error;
  std::set<std::string> published;
  for (const auto& found : fs::directory_iterator(folder_, error)) {
    const auto name = found.path().filename().string();
    if (!name.starts_with("file-") || !name.ends_with(".json")) continue;
    stored_file description;
    description.id = name.substr(0, name.size() - 5);
    const auto size = fs::file_size(path_of(description.id), error);
    if (error || found.file_size(error) > max_description_bytes) continue;
    std::ifstream in(found.path(), std::ios::binary);
    // The process may have run out of descriptors, so this file must not be treated as broken.
    if (!in) {
      published.insert(description.id);
      continue;
    }
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const auto parsed = parse_json(text);
    if (!parsed.ok()) continue;
    description.filename = text_member(parsed.value(), "filename");
    description.purpose = text_member(parsed.value(), "purpose");
    description.tenant = text_member(parsed.value(), "tenant");
    if (const auto* at = parsed.value().find("created_at");
        at != nullptr && at->as_int() != nullptr)
      description.created_unix_s = *at->as_int();
    description.bytes = static_cast<std::int64_t>(size);
    count(description.tenant, description.bytes, 1);
    published.insert(description.id);
    files_[description.id] = {description, 0};
  }
  if (lock_.get() < 0) return;
  std::optional<std::set<std::string>> needed{std::in_place};
  if (find_under_way) needed = find_under_way();
  if (!needed) return;
  for (const auto& found : fs::directory_iterator(folder_, error)) {
    auto id = found.path().filename().string();
    if (id.ends_with(".json")) id.resize(id.size() - 5);
    std::error_code ignored;
    if (is_id_of(file_ids, id) && !published.contains(id) && !needed->contains(id))
      fs::remove(found.path(), ignored);
  }
}

bool file_store::make_folder() {
  if (!folder_.empty()) return true;
  std::error_code error;
  const auto where = fs::temp_directory_path(error);
  if (error) return false;
  const auto id = make_id(temporary_prefix);
  // A process that starts at this moment removes every temporary folder whose lock is free, and
  // knows such folders by the beginning of their names. Therefore the folder gets that name only
  // after it has been locked.
  const auto unlocked = where / ("." + id);
  if (::mkdir(unlocked.c_str(), 0700) != 0) return false;
  lock_ = try_lock(unlocked);
  if (lock_.get() >= 0) fs::rename(unlocked, where / id, error);
  if (error || lock_.get() < 0) {
    std::error_code ignored;
    fs::remove_all(unlocked, ignored);
    return false;
  }
  folder_ = where / id;
  return true;
}

void file_store::count(const std::string& tenant, std::int64_t bytes, int n_files) {
  auto& of = tenants_[tenant];
  bytes_ += bytes;
  of.bytes += bytes;
  of.n_files += static_cast<std::size_t>(n_files);
  if (of.bytes == 0 && of.n_files == 0) tenants_.erase(tenant);
}

std::size_t file_store::files_of(const std::string& tenant) const {
  const auto found = tenants_.find(tenant);
  return found == tenants_.end() ? 0 : found->second.n_files;
}

result<nothing> file_store::reserve(const std::string& tenant, std::int64_t bytes) {
  const double most = share() * static_cast<double>(max_bytes_);
  const std::lock_guard lock(mutex_);
  if (bytes_ + bytes > max_bytes_)
    return full("the stored files fill `batches.max_folder`; delete some");
  const auto found = tenants_.find(tenant);
  const auto held = found == tenants_.end() ? 0 : found->second.bytes;
  if (static_cast<double>(held + bytes) > most)
    return full("the stored files of this tenant fill its share (`batches.tenant_share`) of "
                "`batches.max_folder`; delete some");
  count(tenant, bytes, 0);
  return nothing{};
}

void file_store::give_back(const std::string& tenant, std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  count(tenant, -bytes, 0);
}

result<std::unique_ptr<file_store::writer>> file_store::create(const std::string& tenant) {
  const auto most = share_of(max_files, share());
  const std::lock_guard lock(mutex_);
  if (files_.size() >= max_files)
    return fail({errc::batch_limit,
                 std::to_string(max_files) +
                     " files are stored, which is the most there may be; delete some",
                 ""});
  if (files_of(tenant) >= most)
    return fail({errc::batch_limit,
                 std::to_string(most) +
                     " files of this tenant are stored, which is its share "
                     "(`batches.tenant_share`) of those there may be; delete some",
                 ""});
  if (!make_folder())
    return full("the server cannot create a temporary folder for files; set `batches.folder`");
  const auto id = make_id("file-", server_name_);
  return std::make_unique<writer>(*this, id, tenant, path_of(id));
}

result<std::unique_ptr<file_store::writer>> file_store::reopen(const std::string& id,
                                                               const std::string& tenant) {
  const std::lock_guard lock(mutex_);
  const auto published = files_.find(id);
  if (published != files_.end() && (published->second.description.tenant != tenant ||
                                    published->second.description.purpose != "batch_output"))
    return fail({errc::unknown_file, "the file " + id + " is not an output of this tenant", ""});
  auto out = open_to_write(path_of(id));
  if (out.get() < 0)
    return fail(errno == ENOENT ? api_error{errc::unknown_file, "the file " + id + " is gone", ""}
                                : describe_failure(errno));
  auto reopened = std::make_unique<writer>(*this, id, tenant, path_of(id), std::move(out));
  count(tenant, published == files_.end() ? reopened->bytes() : 0,
        published == files_.end() ? 0 : -1);
  if (published != files_.end()) files_.erase(published);
  return reopened;
}

result<stored_file> file_store::put(stored_file description, std::string_view bytes) {
  auto created = create(description.tenant);
  if (!created.ok()) return fail(created.code());
  const auto written = created.value()->append(bytes);
  if (!written.ok()) return fail(written.code());
  return created.value()->publish(std::move(description));
}

file_store::writer::writer(file_store& store, std::string id, std::string tenant, fs::path path)
    : store_(store), id_(std::move(id)), tenant_(std::move(tenant)), path_(std::move(path)),
      out_(create_private(path_)) {
  if (out_.get() >= 0) description_ = create_private(description_path(path_));
  if (out_.get() < 0 || description_.get() < 0 ||
      !write_at(description_, std::string(reserved_description, ' '), 0))
    fault_ = describe_failure(errno);
}

file_store::writer::writer(file_store& store, std::string id, std::string tenant, fs::path path,
                           descriptor reopened)
    : store_(store), id_(std::move(id)), tenant_(std::move(tenant)), path_(std::move(path)),
      out_(std::move(reopened)), description_(open_to_write(description_path(path_))),
      bytes_(size_of(out_)), kept_(true) {
  if (description_.get() < 0 && errno == ENOENT)
    description_ = create_private(description_path(path_));
  if (description_.get() < 0) fault_ = describe_failure(errno);
}

file_store::writer::~writer() {
  if (published_ || (kept_ && bytes_ > 0)) return;
  std::error_code ignored;
  fs::remove(path_, ignored);
  fs::remove(description_path(path_), ignored);
  store_.give_back(tenant_, bytes_);
}

result<nothing> file_store::writer::append(std::string_view bytes) {
  const auto size = static_cast<std::int64_t>(bytes.size());
  if (fault_.has_value()) return fail(*fault_);
  const auto reserved = store_.reserve(tenant_, size);
  if (!reserved.ok()) return fail(reserved.code());
  if (!write_at(out_, bytes, bytes_)) {
    const int error = errno;
    store_.give_back(tenant_, size);
    // A part of a line would make the whole file unreadable.
    if (::ftruncate(out_.get(), static_cast<off_t>(bytes_)) != 0)
      log::warn(id_ + ": cutting off an incomplete line failed");
    return fail(describe_failure(error));
  }
  bytes_ += size;
  return nothing{};
}

std::unique_ptr<std::ifstream> file_store::writer::read() const {
  auto in = std::make_unique<std::ifstream>(path_, std::ios::binary);
  return in->is_open() ? std::move(in) : nullptr;
}

result<nothing> file_store::writer::cut(std::int64_t bytes) {
  if (::ftruncate(out_.get(), static_cast<off_t>(bytes)) != 0) return fail(describe_failure(errno));
  store_.give_back(tenant_, bytes_ - bytes);
  bytes_ = bytes;
  return nothing{};
}

result<stored_file> file_store::writer::publish(stored_file description) {
  description.id = id_;
  description.tenant = tenant_;
  description.bytes = bytes_;
  description.created_unix_s = now_unix_s();
  const auto json = description_json(description);
  if (fault_.has_value()) return fail(*fault_);
  if (!write_whole(description_, json)) return fail(describe_failure(errno));
  published_ = true;
  const std::lock_guard lock(store_.mutex_);
  store_.count(tenant_, 0, 1);
  store_.files_[id_] = {description, 0};
  return description;
}

std::optional<stored_file> file_store::find(const std::string& id,
                                            const std::string& tenant) const {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(id);
  if (found == files_.end() || found->second.description.tenant != tenant) return std::nullopt;
  return found->second.description;
}

std::vector<stored_file> file_store::list(const std::string& tenant) const {
  std::vector<stored_file> out;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, one] : files_)
      if (one.description.tenant == tenant) out.push_back(one.description);
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
    return a.created_unix_s < b.created_unix_s;
  });
  return out;
}

std::unique_ptr<std::ifstream> file_store::open(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  if (!files_.contains(id)) return nullptr;
  auto in = std::make_unique<std::ifstream>(path_of(id), std::ios::binary);
  return in->is_open() ? std::move(in) : nullptr;
}

result<nothing> file_store::erase(const std::string& id, const std::string& tenant) {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(id);
  if (found == files_.end() || found->second.description.tenant != tenant)
    return fail(no_such_file(id, server_name_));
  if (found->second.n_holds > 0)
    return fail({errc::conflict,
                 "a batch reads the file " + id + "; delete it when the batch has ended", ""});
  std::error_code ignored;
  fs::remove(path_of(id), ignored);
  fs::remove(description_path(path_of(id)), ignored);
  count(tenant, -found->second.description.bytes, -1);
  files_.erase(found);
  return nothing{};
}

bool file_store::hold(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(id);
  if (found == files_.end()) return false;
  ++found->second.n_holds;
  return true;
}

void file_store::release(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(id);
  if (found != files_.end()) --found->second.n_holds;
}

std::int64_t file_store::held_bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

void file_store::account(ledger& to) const {
  const std::string files = "files", stored = "stored files";
  to.exists(stored, true);
  const std::lock_guard lock(mutex_);
  to.taken(bytes_of_files, bytes_);
  for (const auto& [tenant, own] : tenants_) {
    to.taken(share_name(bytes_of_files, tenant), own.bytes);
    to.taken(share_name(files, tenant), static_cast<std::int64_t>(own.n_files));
  }
  for (const auto& [id, one] : files_) {
    account_growing(to, stored, one.description.tenant, one.description.bytes);
    to.held(share_name(files, one.description.tenant), stored);
    to.taken(holds, one.n_holds);
  }
}

void file_store::account_growing(ledger& to, const std::string& holder, const std::string& tenant,
                                 std::int64_t bytes) {
  to.held(bytes_of_files, holder, bytes);
  to.held(share_name(bytes_of_files, tenant), holder, bytes);
}

} // namespace twill::net
