// admin_stream: the protocol of the WebSocket `/admin/stream`, which sends the server's metrics to
// a dashboard. Used on the session's strand.
//
// The first frame has type "history". Then a frame "sample" follows every second, and a frame
// "faults" when warnings or errors were added to the server's log (net/admin/README.md lists the
// members of the frames). A frame is made only when the socket can take one: a client that reads
// slowly misses samples, and nothing waits for that client. Messages from the client are ignored.
#pragma once

#include <cstdint>
#include <optional>

#include "net/admin/monitor.hpp"
#include "net/protocol/dialect.hpp"

namespace twill::net {

class admin_stream final : public dialect {
public:
  explicit admin_stream(dialect_scope scope);

  void on_message(std::string_view) override {}
  void on_event(engine_requests::key, actors::event&&) override {}
  void on_error(const api_error& error) override;
  bool next_frame(std::string& out) override;
  std::size_t waiting_bytes() const override { return 0; }
  bool idle() const override { return true; }

private:
  bool is_still_admin() const;
  bool next_faults(std::string& out);

  dialect_scope scope_;
  std::optional<api_error> error_; ///< the error that is sent next
  bool over_ = false;              ///< no frame follows any more
  bool history_sent_ = false;
  std::uint64_t sample_sent_ = 0;
  std::uint64_t faults_sent_ = 0;
  monitor::subscription woken_;
};

} // namespace twill::net
