// exchange: one request while it runs. It takes the payloads that arrive, with their arrival times,
// and fills the record of the request.
//
// It contains no sockets, so that tests of the timing rules can use made-up clocks. Only one thread
// at a time may use an object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tools/twill-bench/engine/record.hpp"
#include "tools/twill-bench/protocols/protocol.hpp"

namespace twill::bench {

/// When to drop a request on purpose: after this many tokens (0: as soon as it is sent), or after
/// this time.
struct cancel_plan {
  std::optional<std::int32_t> after_tokens;
  std::optional<double> after_s;
  /// True: close the connection, even where a message could cancel the request.
  bool abrupt = false;
};

/// The message of an error object in any of the backends' formats, or `json` itself where there is
/// no such object.
std::string error_text(std::string_view json);

class exchange {
public:
  exchange(const protocol& reader, record& out, std::size_t id, cancel_plan cancel, bool keep_text)
      : reader_(reader), record_(out), id_(id), cancel_(cancel), keep_text_(keep_text) {}

  void started(clock::time_point at) { start_ = last_content_ = at; }
  /// Takes a streamed event. Afterwards the transport checks finished().
  void event(std::string_view payload, clock::time_point at);
  /// Takes an event whose payload has already been parsed into `change`.
  void event(const update& change, std::string_view payload, clock::time_point at);
  /// Takes a whole, not streamed reply with status 200.
  void whole(std::string_view body, clock::time_point at);
  /// Takes a reply with a status other than 200.
  void refused(int status, std::string_view body);
  /// Called by the transport when the stream of events has ended. Completes the record of the
  /// request, or marks it as failed when the stream ended too soon.
  void ended();
  void fail(std::string kind, std::string message);
  void cancelled();
  void interrupted();

  /// True when the request is completed, failed or cancelled, so that the rest need not be read.
  bool finished() const { return finished_; }
  bool cancel_due() const;

  std::size_t id() const { return id_; }
  clock::time_point start() const { return start_; }
  const cancel_plan& cancellation() const { return cancel_; }
  const record& observed() const { return record_; }

private:
  void take(const update& change, clock::time_point at, bool streamed);
  void keep(const update& change);
  void settle(outcome how);

  const protocol& reader_;
  record& record_;
  std::size_t id_;
  cancel_plan cancel_;
  bool keep_text_;

  clock::time_point start_{}, last_content_{};
  std::int32_t counted_tokens_ = 0;
  std::int32_t chunks_ = 0;
  bool ended_well_ = false; ///< the end mark of the backend, or a finish reason, has arrived
  bool finished_ = false;
};

} // namespace twill::bench
