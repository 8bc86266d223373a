// The part of batch_runner that continues batches of an earlier run.
#include <cstddef>
#include <unordered_set>
#include <utility>

#include "config/base/log.hpp"
#include "net/batch/active_batch.hpp"

namespace twill::net {

void batch_runner::adopt(const batch& earlier) {
  const auto opened = open(earlier);
  using file = batch_output::file;
  for (const auto& [which, id] : {std::pair(file::output, earlier.output_under_way),
                                  std::pair(file::errors, earlier.errors_under_way)}) {
    if (id.empty()) continue;
    const auto reopened = opened->out.reopen(which, id);
    if (!reopened.ok()) return leave(opened, reopened.code());
  }
  adopted_.push_back(opened);
}

/// Leaves a batch as it is, because its files cannot be read now, for example because the process
/// has no free file descriptor. The next start of the daemon tries again.
void batch_runner::leave(const std::shared_ptr<active_batch>& opened, const api_error& why) {
  log::warn(opened->id +
            " is left for the next start, since its files cannot be read: " + why.message);
  left_.push_back(opened);
}

void batch_runner::begin() {
  for (std::size_t n = adopted_.size(); n > 0; --n)
    thread_.post([this] {
      const auto one = adopted_.front();
      adopted_.pop_front();
      if (!stopped_) resume(one);
    });
}

void batch_runner::resume(const std::shared_ptr<active_batch>& opened) {
  const auto record = batches_.get(opened->id);
  if (!record) return;
  if (record->total == 0) return validate(opened); // the last server had not checked its input file
  const auto left = find_answers(opened);
  if (!left) return;
  if (record->status == batch_status::finalizing && *left == 0) {
    // The completion window may have passed since, but the batch was complete in time.
    opened->read_all = true;
    return finish_if_done(opened);
  }
  if (record->status == batch_status::finalizing)
    batches_.update(opened->id, [](batch& b) { b.status = batch_status::in_progress; });
  run(opened);
}

/// Makes the input skip the lines whose replies are in the batch's output file or error file.
/// Returns the number of remaining lines, or nothing if the batch cannot be continued.
std::optional<std::int64_t> batch_runner::find_answers(const std::shared_ptr<active_batch>& of) {
  std::unordered_set<std::string> answered;
  const auto completed = of->out.read_answers(batch_output::file::output, answered);
  const auto failed = of->out.read_answers(batch_output::file::errors, answered);
  for (const auto* read : {&completed, &failed})
    if (!read->ok()) {
      leave(of, read->code());
      return std::nullopt;
    }
  const auto left = of->in->skip(answered, of->endpoint);
  batches_.update(of->id, [&](batch& b) {
    b.completed = completed.value();
    b.failed = failed.value();
    if (!left)
      b.faults.push_back({"file_not_found",
                          "the input file is gone or cannot be read since the server started anew; "
                          "lines without an answer are not in the output and error file",
                          "input_file_id", 0});
  });
  if (!left) close(*of, batch_status::failed);
  return left;
}

} // namespace twill::net
