// active_batch, running_line: what batch_runner knows of a batch under way and of a line whose
// answer is still to come. On the batch thread alone.
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
  std::optional<batch_input> in; ///< until the batch ends
  batch_output out;
  std::chrono::system_clock::time_point expires;
  std::int32_t lines_running = 0;
  std::int32_t in_engine = 0; ///< requests that were sent and have not ended
  bool read_all = false;
  bool ended = false;
  clock::time_point due;
  clock::time_point not_before; ///< its lines wait until then, and those of others do not
  std::chrono::milliseconds model_wait{0}; ///< > 0: its model could not serve the last time
  std::string waits_because;               ///< with model_wait: what the engine said

  /// While nobody knows whether its model can be served, one request at a time finds out, so that
  /// requests which wait for a model to load do not take the room of other batches.
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
      to_send; ///< indices of requests that are still to be sent, in reverse order
  std::size_t remaining = 0;
  bool finds_out = false; ///< it was sent while nobody knew whether the model can be served
  std::string body;
  std::vector<std::string> records; ///< of its events, where it is to be stored
};

} // namespace twill::net
