#include "tools/twill-bench/runs/load_runner.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "tools/twill-bench/engine/api_key.hpp"
#include "tools/twill-bench/engine/control_client.hpp"
#include "tools/twill-bench/engine/load_run.hpp"
#include "tools/twill-bench/engine/record.hpp"
#include "tools/twill-bench/engine/text.hpp"
#include "tools/twill-bench/report/write_file.hpp"
#include "tools/twill-bench/runs/plan.hpp"

namespace twill::bench {
namespace {

/// Splits a URL into the server's URL and the path.
std::pair<std::string, std::string> split_url(const std::string& url) {
  const std::size_t host = url.find("://") == std::string::npos ? 0 : url.find("://") + 3;
  const std::size_t path = url.find('/', host);
  if (path == std::string::npos) return {url, "/"};
  return {url.substr(0, path), url.substr(path)};
}

bool answers(const std::string& url, bool any_status) {
  const auto [base, path] = split_url(url);
  const reply answer = control_client(base, with_api_key({}, {})).get(path);
  return any_status ? answer.status != 0 : answer.ok();
}

/// The end of a log file, for messages.
std::string tail_of(const std::string& path) {
  const std::string all = read_file(path);
  return all.substr(all.size() - std::min<std::size_t>(all.size(), 1500));
}

} // namespace

bool load_runner::interrupted() {
  interrupted_ = interrupted_ || signals_.came_within(std::chrono::milliseconds(0));
  return interrupted_;
}

std::unique_ptr<child> load_runner::start(const planned_server& server,
                                          const std::string& log_path) {
  if (answers(server.ready_url, true))
    throw std::runtime_error(server.name + ": something answers at " + server.ready_url +
                             " already: end it, or give another port");
  child_order how = server.order;
  how.log_path = log_path;
  auto program = std::make_unique<child>(how);
  const clock::time_point until =
      program->started() + std::chrono::duration_cast<clock::duration>(server.ready_timeout);
  while (!answers(server.ready_url, false)) {
    if (!program->running())
      throw std::runtime_error(server.name + " ended with status " +
                               std::to_string(program->exit_status()) +
                               " before it was ready; its log ends:\n" + tail_of(log_path));
    if (clock::now() > until)
      throw std::runtime_error(server.name + " was not ready at " + server.ready_url + " after " +
                               duration_text(server.ready_timeout.count()));
    if (signals_.came_within(std::chrono::milliseconds(5))) {
      interrupted_ = true;
      return nullptr;
    }
  }
  return program;
}

void load_runner::warm_up(const serve_options& options) {
  load_run run(options, progress_style::on_terminal(show_progress_));
  if (options.ready_timeout.count() > 0) run.check_ready();
  if (!run.warm_up()) interrupted_ = true;
}

std::optional<measured_load> load_runner::measure(const serve_options& options,
                                                  const std::string& label, double seconds_after) {
  progress_style style = progress_style::on_terminal(show_progress_);
  style.label = label;
  style.seconds_after = seconds_after;
  load_run run(options, style);
  if (!run.warm_up()) interrupted_ = true;
  if (interrupted()) return std::nullopt;
  const load_result result = run.measure();
  if (result.outcome.interrupted) interrupted_ = true;
  if (interrupted()) return std::nullopt;
  return measured_load{figures_of(result, run.options()), result.remarks};
}

} // namespace twill::bench
