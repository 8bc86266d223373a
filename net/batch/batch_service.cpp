#include "net/batch/batch_service.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "config/base/log.hpp"
#include "config/base/units.hpp"
#include "net/endpoints.hpp"
#include "net/protocol/json/fields.hpp"
#include "net/protocol/json/json_writer.hpp"
#include "net/random_id.hpp"
#include "net/server_name.hpp"

namespace twill::net {
namespace {

constexpr std::size_t longest_window_text = 32;

/// Converts a time such as "24h", "30m" or "7d" to seconds; returns 0 if the text is not such a
/// time.
std::int64_t window_seconds(const std::string& text) {
  if (text.size() > longest_window_text) return 0; // a text this long has many leading zeros
  std::string hours = text;
  std::int64_t times = 1;
  if (text.size() > 1 && text.back() == 'd') {
    hours.back() = 'h';
    times = 24;
  }
  const auto parsed = parse_duration(hours);
  if (!parsed) return 0;
  return std::chrono::duration_cast<std::chrono::seconds>(*parsed).count() * times;
}

api_error too_many_batches(batch_table::added why, std::size_t most_of_tenant) {
  const std::string rule =
      why == batch_table::added::too_many
          ? std::to_string(batch_table::max_active) + " batches are under way, which is the most "
          : std::to_string(most_of_tenant) + " batches of this tenant are under way, which is its "
                                             "share (`batches.tenant_share`) of those ";
  return {errc::batch_limit, rule + "there may be; retry when one has ended", ""};
}

constexpr std::int64_t longest_window_s = 30 * 24 * 3600;

void check_metadata(fields& from) {
  const auto* metadata = from.object("metadata");
  if (metadata == nullptr || !from.ok()) return;
  const auto& members = *metadata->as_object();
  const bool valid =
      members.size() <= 16 && std::all_of(members.begin(), members.end(), [](const auto& member) {
        const auto* text = member.second.as_string();
        return text != nullptr && member.first.size() <= 64 && text->size() <= 512;
      });
  if (!valid)
    from.reject("metadata", "at most 16 strings of at most 512 bytes, names of at most 64",
                *metadata);
}

using batch_fields = fields_of<batch>;

constexpr std::array batch_fields_table = {
    batch_fields::member<&batch::input_file_id>("input_file_id", "The uploaded file of requests."),
    batch_fields::member<&batch::endpoint>("endpoint", "The path that its lines are asked at."),
    batch_fields::member<&batch::completion_window>(
        "completion_window", "By when it must have ended: a time such as 24h, of at most 30d.")};
constexpr field_row metadata_row{
    "metadata",
    R"("type":"object","maxProperties":16,"additionalProperties":{"type":"string","maxLength":512})",
    "Comes back with the batch."};

} // namespace

field_rows batch_rows() {
  field_rows rows;
  add_rows(rows, batch_fields_table);
  for (auto& row : rows)
    row.required = true;
  rows.push_back(metadata_row);
  return rows;
}

api_error no_such_batch(const std::string& id, const std::string& server_name) {
  return {errc::unknown_batch,
          describe_absent(batch_ids, id, server_name, "GET /v1/batches lists yours"), ""};
}

batch_service::batch_service(server_context& context, batch_runner::thread_seam thread)
    : share_([&context] {
        const bool several = context.current.get()->keys.several_tenants();
        return several ? context.options.batches.tenant_share : 1.0;
      }),
      server_name_(context.options.server.name), folder_(context.options.batches.folder),
      files_(context.options.batches.folder, context.options.batches.max_folder_bytes, share_,
             server_name_, [this] { return read_folder(); }),
      runner_(context, files_, batches_, folder_, std::move(thread)) {
  if (const auto& folder = context.options.batches.folder; !folder.empty() && !folder_.is_open())
    log::warn("`batches.folder` " + folder +
              " is in use by another process: batches of this one end with it");
  for (const auto& one : std::exchange(earlier_, {}))
    restore(one);
}

/// Called by file_store when it has locked the folder.
std::optional<std::set<std::string>> batch_service::read_folder() {
  auto found = folder_.open();
  earlier_ = std::move(found.batches);
  return std::move(found.files);
}

void batch_service::restore(const batch& earlier) {
  std::string forgotten;
  if (!batches_.restore(earlier, &forgotten))
    return log::warn(earlier.id + " is left out: " + std::to_string(batch_table::max_batches) +
                     " batches are under way, which is the most there may be");
  if (!forgotten.empty()) folder_.save_or_warn(batches_, forgotten);
  if (is_final(earlier.status)) return;
  files_.hold(earlier.input_file_id); // if the file no longer exists, the batch fails later
  log::info(earlier.id + " is taken up again: it was under way when the last server ended");
  runner_.adopt(earlier);
}

result<batch> batch_service::create(const value& body, const std::string& tenant) {
  fields from(body);
  batch created;
  for (const auto& field : batch_fields_table)
    from.require(field.row.name);
  read_fields(from, batch_fields_table, created);
  check_metadata(from);
  if (from.ok() && find_batch_codec(created.endpoint) == nullptr)
    from.reject("endpoint", batch_paths(), value(created.endpoint));
  const auto window_s = window_seconds(created.completion_window);
  if (from.ok() && (window_s < 1 || window_s > longest_window_s))
    from.reject("completion_window", "a time such as 24h, of at most 30d",
                value(created.completion_window));
  if (!from.ok()) return fail(from.error());
  const auto input = files_.find(created.input_file_id, tenant);
  if (!input || !files_.hold(created.input_file_id))
    return fail({errc::unknown_file,
                 "`input_file_id` must name an uploaded file, got " +
                     describe_unknown_value(file_ids, created.input_file_id, server_name_),
                 "input_file_id"});
  if (const auto* metadata = from.find("metadata")) created.metadata = *metadata;
  created.id = make_id("batch_", server_name_);
  created.tenant = tenant;
  created.reach(batch_status::validating);
  created.expires_unix_s = created.reached_unix_s.front() + window_s;
  const auto most = share_of(batch_table::max_active, share_());
  std::string forgotten;
  if (const auto added = batches_.add(created, most, &forgotten);
      added != batch_table::added::yes) {
    files_.release(created.input_file_id);
    return fail(too_many_batches(added, most));
  }
  if (!forgotten.empty()) folder_.save_or_warn(batches_, forgotten);
  if (const auto saved = folder_.save(batches_, created.id); !saved.ok()) {
    batches_.remove(created.id);
    folder_.save_or_warn(batches_, created.id);
    files_.release(created.input_file_id);
    return fail(saved.code());
  }
  runner_.submit(created);
  return created;
}

result<batch> batch_service::cancel(const std::string& id, const std::string& tenant) {
  const auto found = batches_.find(id, tenant);
  if (!found) return fail(no_such_batch(id, server_name_));
  bool too_late = false;
  batches_.update(id, [&](batch& b) {
    too_late = is_final(b.status);
    if (!too_late && b.status != batch_status::cancelling) b.reach(batch_status::cancelling);
  });
  const auto now = batches_.find(id, tenant);
  if (too_late || !now)
    return fail({errc::conflict,
                 "the batch is " + std::string(name_of(now->status)) +
                     "; only a batch that is under way can be cancelled",
                 ""});
  folder_.save_or_warn(batches_, id);
  runner_.cancel(id);
  return *now;
}

} // namespace twill::net
