#include "net/batch/batch_runner.hpp"

#include <algorithm>
#include <utility>

#include "config/base/assert.hpp"
#include "config/base/log.hpp"
#include "net/batch/active_batch.hpp"
#include "net/endpoints.hpp"
#include "net/error_map.hpp"
#include "net/protocol/model_lookup.hpp"
#include "net/stored/stored_record.hpp"
#include "net/stored/stored_service.hpp"
#include "net/tracing/tracer.hpp"

namespace twill::net {
namespace {

bool is_transient(const api_error& error) {
  const auto* code = std::get_if<actors::errc>(&error.code);
  return code != nullptr &&
         (*code == actors::errc::queue_full || *code == actors::errc::rate_limited ||
          *code == actors::errc::queue_timed_out || *code == actors::errc::not_ready ||
          *code == actors::errc::shutting_down);
}

bool streams(const value& body) {
  const auto* stream = body.find("stream");
  return stream != nullptr && !stream->is_null() && *stream != value(false);
}

} // namespace

batch_runner::batch_runner(server_context& context, file_store& files, batch_table& batches,
                           batch_folder& folder, thread_seam thread)
    : context_(context), files_(files), batches_(batches), folder_(folder),
      thread_(std::move(thread)),
      requests_(context.engine, [this] { thread_.post([this] { on_events(); }); }) {}

batch_runner::~batch_runner() {
  requests_.close();
}

void batch_runner::submit(const batch& queued) {
  thread_.post([this, queued] {
    if (!stopped_) validate(open(queued));
  });
}

void batch_runner::cancel(const std::string& id) {
  thread_.post([this, id] {
    if (stopped_) return; // the next start will end the batch
    for (const auto& one : std::list(active_))
      if (one->id == id) end_cancelled(one);
    pump();
  });
}

void batch_runner::stop() {
  thread_.post([this] {
    if (std::exchange(stopped_, true)) return;
    for (const auto& one : std::list(active_))
      if (folder_.is_open())
        put_away(one);
      else
        end_early(
            one, batch_status::failed,
            {"server_stopped", "This request was not executed because the server stopped.", "", 0});
  });
}

// --- beginning ---------------------------------------------------------------------------------

std::shared_ptr<batch_runner::active_batch> batch_runner::open(const batch& record) {
  batch_output::name_file name;
  if (folder_.is_open())
    name = [this, of = record.id](batch_output::file which, const std::string& id) {
      batches_.update(of, [&](batch& b) {
        (which == batch_output::file::output ? b.output_under_way : b.errors_under_way) = id;
      });
      return folder_.save(batches_, of);
    };
  return std::make_shared<active_batch>(record, files_, std::move(name));
}

void batch_runner::validate(const std::shared_ptr<active_batch>& opened) {
  auto checked = opened->in->check(opened->endpoint);
  const bool valid = checked.faults.empty();
  batches_.update(opened->id, [&](batch& b) {
    b.faults = std::move(checked.faults);
    b.total = checked.total;
    if (b.status == batch_status::validating)
      b.reach(valid ? batch_status::in_progress : batch_status::failed);
    else if (!valid)
      b.reach(batch_status::cancelled); // the client cancelled the batch while the file was read
  });
  folder_.save_or_warn(batches_, opened->id);
  if (valid) run(opened);
}

void batch_runner::run(const std::shared_ptr<active_batch>& opened) {
  const auto left = opened->expires - std::chrono::system_clock::now();
  opened->due = clock::now() + std::chrono::duration_cast<clock::duration>(left);
  active_.push_back(opened);
  if (batches_.status_of(opened->id) == batch_status::cancelling)
    end_cancelled(opened);
  else if (clock::now() >= opened->due)
    end_expired(opened);
  pump();
}

// --- sending -------------------------------------------------------------------------------------

void batch_runner::pump() {
  if (stopped_) return;
  const auto began = clock::now();
  while (send_next()) {
  }
  arm(began);
}

bool batch_runner::send_next() {
  if (sequences_ >= context_.options.batches.max_running) return false;
  const auto now = clock::now();
  const auto waiting = std::find_if(lines_.begin(), lines_.end(), [now](const auto& line) {
    return !line->to_send.empty() && line->owner->may_send(now);
  });
  const auto line = waiting != lines_.end() ? *waiting : next_line();
  if (!line) return false;
  const auto n = line->generation.requests[line->to_send.back()].sampling.n;
  // A request for more sequences than max_running is sent only when nothing else runs.
  if (sequences_ > 0 && sequences_ + n > context_.options.batches.max_running) return false;
  send(line);
  return true;
}

/// Reads and parses the next input line of the batch whose turn it is. Faulty lines get an error
/// reply at once and are skipped.
std::shared_ptr<batch_runner::running_line> batch_runner::next_line() {
  for (const auto& turn : in_turn()) {
    if (!turn->may_send(clock::now())) continue;
    turns_[turn->tenant] = ++last_turn_;
    active_.remove(turn);
    active_.push_back(turn);
    while (!turn->ended && turn->may_send(clock::now())) {
      const auto text = turn->in->next();
      if (!text) {
        turn->read_all = true;
        break;
      }
      if (auto line = open_line(turn, *text)) return line;
    }
    finish_if_done(turn);
  }
  return nullptr;
}

/// Returns the batches in the order of their turns. The batches of the tenant that has waited
/// longest come first; of one tenant's batches, the one that has waited longest comes first.
std::vector<std::shared_ptr<batch_runner::active_batch>> batch_runner::in_turn() {
  std::vector<std::shared_ptr<active_batch>> all(active_.begin(), active_.end());
  std::erase_if(turns_, [&](const auto& one) {
    return std::none_of(all.begin(), all.end(),
                        [&](const auto& active) { return active->tenant == one.first; });
  });
  std::stable_sort(all.begin(), all.end(), [this](const auto& a, const auto& b) {
    const auto turn_of = [this](const auto& active) {
      const auto found = turns_.find(active->tenant);
      return found == turns_.end() ? std::uint64_t{0} : found->second;
    };
    return turn_of(a) < turn_of(b);
  });
  return all;
}

/// Returns nullptr if the line got an error reply, or must wait.
std::shared_ptr<batch_runner::running_line>
batch_runner::open_line(const std::shared_ptr<active_batch>& from, const std::string& text) {
  auto line = std::make_shared<running_line>();
  line->owner = from;
  ++from->lines_running;
  auto parsed = parse_batch_line(text, from->endpoint);
  const auto refuse = [&](const api_error& error) {
    if (is_transient(error)) {
      --from->lines_running;
      from->in->put_back(text);
      from->wait(error);
    } else {
      end_line(line, map_error(error).http_status, error_body(error));
    }
    return nullptr;
  };
  // The file was valid when it was checked, but the file may have been changed since then.
  if (auto* fault = std::get_if<batch_fault>(&parsed))
    return refuse({errc::invalid_field, fault->message, fault->param});
  auto& [custom_id, body] = std::get<batch_line>(parsed);
  line->custom_id = std::move(custom_id);
  if (streams(body))
    return refuse({errc::invalid_field, "`stream` must be false or absent in a batch", "stream"});
  const auto current = context_.current.get();
  // A configuration reload since the batch was created may have removed the tenant, and the
  // tenant's limits with it.
  if (!current->keys.has_key(from->tenant)) return refuse(unknown_key());
  const auto model = find_model(context_.engine, body, current->tenant(from->tenant));
  if (!model.ok()) return refuse(model.code());
  const codec_context context{model.value(),   current->limits,
                              context_.engine, context_.find_previous,
                              from->tenant,    context_.options.server.name};
  const codec parse = find_batch_codec(from->endpoint);
  TWILL_ASSERT(parse != nullptr, "a batch was made for an endpoint that is not for batches");
  auto generation = parse(body, context);
  if (!generation.ok()) return refuse(generation.code());
  line->generation = std::move(generation).value();
  if (const auto& stored = line->generation.stored; stored && stored->background)
    return refuse(
        {errc::invalid_field, "`background` must be false or absent in a batch", "background"});
  line->remaining = line->generation.requests.size();
  for (std::size_t i = line->remaining; i > 0; --i) {
    auto& request = line->generation.requests[i - 1];
    request.tenant = from->tenant;
    request.client_id = from->id;
    line->to_send.push_back(i - 1);
  }
  lines_.push_back(line);
  return line;
}

void batch_runner::send(const std::shared_ptr<running_line>& line) {
  const auto index = line->to_send.back();
  line->to_send.pop_back();
  line->finds_out = line->owner->model_wait.count() > 0;
  ++line->owner->in_engine;
  auto request = line->generation.requests[index];
  sequences_ += request.sampling.n;
  if (context_.traces != nullptr) context_.traces->watch(request, {});
  sent_.emplace(requests_.start(std::move(request)), sent_request{line, index});
}

// --- answers -------------------------------------------------------------------------------------

void batch_runner::on_events() {
  for (auto& [key, ev] : requests_.take_events())
    on_event(key, std::move(ev));
  pump();
}

void batch_runner::on_event(engine_requests::key key, actors::event&& ev) {
  const auto found = sent_.find(key);
  if (found == sent_.end()) return;
  const auto [line, index] = found->second;
  if (ev.last || ev.error) {
    sequences_ -= line->generation.requests[index].sampling.n;
    --line->owner->in_engine;
    sent_.erase(found);
  }
  if (ev.error) {
    const api_error error = from_engine(std::move(*ev.error));
    if (is_transient(error)) {
      line->to_send.push_back(index);
      line->records.clear();
      return line->owner->wait(error);
    }
    if (line->finds_out) line->owner->model_answered();
    drop_line(line);
    return end_line(line, map_error(error).http_status, error_body(error));
  }
  if (line->finds_out) line->owner->model_answered();
  const bool last = ev.last;
  if (line->generation.stored) line->records.push_back(write_record(ev));
  line->generation.encoder->on_event(index, std::move(ev), line->body);
  if (!last || --line->remaining > 0) return;
  line->generation.encoder->on_end(line->body);
  if (auto& stored = line->generation.stored)
    context_.stored->add_finished(std::move(*stored), std::move(line->records));
  drop_line(line);
  end_line(line, 200, line->body);
}

/// Removes a running line and cancels its requests in the engine.
void batch_runner::drop_line(const std::shared_ptr<running_line>& line) {
  std::erase_if(sent_, [&](const auto& entry) {
    if (entry.second.line != line) return false;
    requests_.cancel(entry.first);
    sequences_ -= line->generation.requests[entry.second.index].sampling.n;
    --line->owner->in_engine;
    return true;
  });
  lines_.remove(line);
}

void batch_runner::end_line(const std::shared_ptr<running_line>& line, int status,
                            const std::string& body) {
  const auto owner = line->owner;
  --owner->lines_running;
  if (owner->ended) return;
  const bool succeeded = status == 200;
  if (!write(*owner, succeeded, reply_line(line->custom_id, status, body))) return;
  batches_.update(owner->id, [&](batch& b) { ++(succeeded ? b.completed : b.failed); });
  finish_if_done(owner);
}

// --- ending -------------------------------------------------------------------------------------

/// Writes a line. If the write fails, the batch fails, because its replies cannot be kept.
bool batch_runner::write(active_batch& to, bool succeeded, const std::string& text) {
  using file = batch_output::file;
  const auto written = to.out.write(succeeded ? file::output : file::errors, text);
  if (written.ok()) return true;
  const api_error& error = written.code();
  log::warn(to.id + ": " + error.message);
  batches_.update(to.id, [&](batch& b) {
    b.faults.push_back({std::string(map_error(error).code), error.message, "", 0});
  });
  for (const auto& line : std::list(lines_))
    if (line->owner.get() == &to) drop_line(line);
  close(to, batch_status::failed);
  return false;
}

/// Ends a batch that was cancelled or has expired, or that still runs when the server stops and is
/// not kept on disk. The error file gets a line for each request without a reply.
void batch_runner::end_early(const std::shared_ptr<active_batch>& which, batch_status how,
                             const batch_fault& why) {
  std::vector<std::string> unanswered;
  for (const auto& line : std::list(lines_)) {
    if (line->owner != which) continue;
    unanswered.push_back(line->custom_id);
    drop_line(line);
  }
  const auto report_unanswered = [&](const std::string& custom_id) {
    if (write(*which, false, unanswered_line(custom_id, why.code, why.message)))
      batches_.update(which->id, [](batch& b) { ++b.failed; });
  };
  for (const auto& id : unanswered)
    if (!which->ended) report_unanswered(id);
  while (!which->ended) {
    const auto text = which->in->next();
    if (!text) break;
    const auto parsed = parse_batch_line(*text, which->endpoint);
    if (const auto* line = std::get_if<batch_line>(&parsed)) report_unanswered(line->custom_id);
  }
  if (how == batch_status::failed)
    batches_.update(which->id, [&](batch& b) { b.faults.push_back(why); });
  if (!which->ended) close(*which, how);
}

void batch_runner::end_cancelled(const std::shared_ptr<active_batch>& which) {
  end_early(
      which, batch_status::cancelled,
      {"batch_cancelled", "This request was not executed because the batch was cancelled.", "", 0});
}

void batch_runner::end_expired(const std::shared_ptr<active_batch>& which) {
  end_early(which, batch_status::expired,
            {"batch_expired",
             "This request could not be executed before the completion window expired" +
                 (which->waits_because.empty() ? "." : ": " + which->waits_because),
             "", 0});
}

/// Leaves a batch for the next start of the daemon. The daemon then sends again those lines of the
/// batch that have no reply yet. Until the process ends, nobody can delete the batch's input file.
void batch_runner::put_away(const std::shared_ptr<active_batch>& which) {
  for (const auto& line : std::list(lines_))
    if (line->owner == which) drop_line(line);
  which->lines_running = 0;
  folder_.save_or_warn(batches_, which->id);
}

void batch_runner::finish_if_done(const std::shared_ptr<active_batch>& which) {
  if (which->ended || !which->read_all || which->lines_running > 0) return;
  batches_.update(which->id, [](batch& b) { b.reach(batch_status::finalizing); });
  folder_.save_or_warn(batches_, which->id);
  close(*which, batch_status::completed);
}

/// Publishes the files of a batch that has ended.
void batch_runner::close(active_batch& which, batch_status how) {
  which.ended = true;
  const auto publish = [&](batch_output::file file, const char* name) {
    auto published = which.out.publish(file, which.id + name);
    if (published.ok()) return std::move(published).value();
    log::warn(which.id + ": " + published.code().message);
    return std::string();
  };
  const auto output = publish(batch_output::file::output, "_output.jsonl");
  const auto errors = publish(batch_output::file::errors, "_error.jsonl");
  which.in.reset();
  batches_.update(which.id, [&](batch& b) {
    b.output_file_id = output;
    b.error_file_id = errors;
    b.output_under_way.clear();
    b.errors_under_way.clear();
    b.reach(how);
  });
  folder_.save_or_warn(batches_, which.id);
  active_.remove_if([&](const auto& one) { return one.get() == &which; });
}

// --- time ----------------------------------------------------------------------------------------

void batch_runner::on_timer() {
  if (stopped_) return;
  const auto now = clock::now();
  for (const auto& one : std::list(active_))
    if (now >= one->due) end_expired(one);
  pump();
}

void batch_runner::arm(clock::time_point began) {
  auto due = clock::time_point::max();
  const auto now = clock::now();
  for (const auto& one : active_) {
    due = std::min(due, one->due);
    // pump() started at the time `began` and skipped each batch that had to wait longer
    // (`not_before`). The timer must make pump() run again for such a batch, even if its waiting
    // time has ended since then, because nothing else would send its lines.
    if (one->not_before > began) due = std::min(due, one->not_before);
  }
  if (due == clock::time_point::max()) return;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(due - now);
  thread_.wake_after(std::max(left, std::chrono::milliseconds{0}) + std::chrono::milliseconds{1});
}

} // namespace twill::net
