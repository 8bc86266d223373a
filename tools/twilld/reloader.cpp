#include "tools/twilld/reloader.hpp"

#include <algorithm>

#include "config/base/json_text.hpp"
#include "config/base/log.hpp"
#include "config/base/value.hpp"
#include "config/needs_keys.hpp"
#include "tools/twilld/keys_file.hpp"

namespace twill::tools {
namespace {

std::string words_of(const config::key_change& change) {
  const auto what = change.before == change.after ? change.after + ", others than before"
                                                  : change.before + " -> " + change.after;
  return "`" + change.key + "` (" + what + ")";
}

std::string words_of(const std::vector<config::key_change>& changes) {
  std::string all;
  for (const auto& one : changes)
    all += (all.empty() ? "" : ", ") + words_of(one);
  return all;
}

value list_of(const std::vector<config::key_change>& changes) {
  value_list all;
  for (const auto& one : changes)
    all.emplace_back(value_object{{"key", one.key}, {"before", one.before}, {"after", one.after}});
  return all;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find('\n', begin), text.size());
    if (end > begin) lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

} // namespace

std::string reload_report::line() const {
  if (!faults.empty()) {
    std::string all = "nothing was reloaded: ";
    for (const auto& fault : faults)
      all += (&fault == &faults.front() ? "" : "; ") + fault;
    return all;
  }
  std::string all = words_of(changed);
  if (tls) all = "the TLS certificate" + (all.empty() ? "" : ", " + all);
  return "reloaded " + (all.empty() ? "nothing" : all) +
         (needs_restart.empty() ? ""
                                : "; these changes need a restart: " + words_of(needs_restart));
}

std::string reload_report::json() const {
  value_list errors;
  for (const auto& fault : faults)
    errors.emplace_back(fault);
  return to_json(value_object{{"reloaded", faults.empty()},
                              {"changed", list_of(changed)},
                              {"needs_restart", list_of(needs_restart)},
                              {"tls_certificate", tls},
                              {"errors", std::move(errors)}});
}

reload_report reloader::reload() {
  const std::lock_guard lock(mutex_);
  const auto loaded = config::load_files(from_.paths, from_.settings, from_.read);
  if (!loaded.ok()) return {lines_of(loaded.detail()), {}, {}, false};
  auto tenants = read_keys_file(loaded.value(), from_.read);
  if (!tenants.ok()) return {lines_of(tenants.detail()), {}, {}, false};
  if (config::needs_keys(from_.effective) && !config::needs_keys(loaded.value()))
    return {{"the last key cannot be taken away while the daemon runs, because everybody would be "
             "let in; restart it if that is meant"},
            {},
            {},
            false};
  // The last thing that can fail.
  const bool tls = !from_.configured.server.tls_certificate.empty();
  if (tls)
    if (const auto fault = server_.reload_certificate(); !fault.empty())
      return {lines_of(fault), {}, {}, false};

  auto effective = loaded.value();
  effective.tenants = std::move(tenants).value();
  effective = config::take_reloads(from_.effective, effective);
  reload_report report;
  report.tls = tls;
  const auto configured = config::take_reloads(from_.configured, loaded.value());
  report.needs_restart = config::changes_between(configured, loaded.value());
  // Keys that came or went in `server.keys_file` are told as tenants, so tenants are compared as
  // they run, and everything else as it was configured.
  auto before = from_.configured, after = configured;
  before.tenants = from_.effective.tenants;
  after.tenants = effective.tenants;
  report.changed = config::changes_between(before, after);
  // The engine first: it must know the limits of a new tenant before the server lets its keys in.
  engine_.reload(effective);
  server_.reload(effective);
  log::configure(*log::level_named(effective.log.level));
  from_.configured = configured;
  from_.effective = std::move(effective);
  return report;
}

} // namespace twill::tools
