// active_batch, running_line: the state that batch_runner keeps of a running batch, and of an input
// line whose reply is not complete yet. Used only on the batch thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "net/batch/batch_input.hpp"
#include "net/batch/batch_output.hpp"
#include "net/batch/batch_runner.hpp"
#include "net/protocol/codec.hpp"

namespace twill::net {

struct batch_runner::active_batch {
  active_batch(const batch& record, file_store& files, batch_output::name_file name)
      : id(record.id), tenant(record.tenant), endpoint(record.endpoint),
        in(std::in_place, files, record.input_file_id), out(files, record.tenant, std::move(name)),
        expires(std::chrono::system_clock::from_time_t(record.expires_unix_s)) {}

  std::string id, tenant, endpoint;
  std::optional<batch_input> in; ///< empty once the batch has ended
  batch_output out;
  std::chrono::system_clock::time_point expires;
  std::int32_t lines_running = 0;
  std::int32_t in_engine = 0; ///< number of requests that were sent and have not ended
  bool read_all = false;
  bool ended = false;
  clock::time_point due;
  /// Until this time no line of this batch is sent; other batches are not delayed.
  clock::time_point not_before;
  /// Greater than 0 if the model could not be served when the last request was sent. It is then the
  /// time to wait before the next attempt.
  std::chrono::milliseconds model_wait{0};
  std::string waits_because; ///< if model_wait > 0: the engine's error message

  /// Returns whether a request of this batch may be sent now. While it is unknown whether the
  /// batch's model can be served, only one request at a time is sent as a test, so that requests
  /// which wait for a model to load do not take the capacity of other batches.
  bool may_send(clock::time_point now) const {
    return not_before <= now && (model_wait.count() == 0 || in_engine == 0);
  }
  void wait(const api_error& why);
  void model_answered() {
    model_wait = {};
    waits_because.clear();
  }
};

struct batch_runner::running_line {
  std::shared_ptr<active_batch> owner;
  std::string custom_id;
  call generation;
  std::vector<std::size_t>
      to_send; ///< indices of requests that have not been sent yet, in reverse order
  std::size_t remaining = 0;
  /// The line's last request was sent as a test of whether the model can be served.
  bool finds_out = false;
  std::string body;
  /// The line's events as stored records; filled only if the line's response is to be stored.
  std::vector<std::string> records;
};

} // namespace twill::net
