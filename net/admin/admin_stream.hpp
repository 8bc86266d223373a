// admin_stream: the dialect of `/admin/stream`: the server's figures, pushed to a dashboard. On the
// session's strand.
//
// First comes a frame "history", then once a second a frame "sample", and a frame "faults" when the
// log has new ones (net/admin/README.md lists their members). A frame is made when the socket can
// take it: a client that reads slowly misses samples, and nothing waits for it. What a client sends
// is ignored.
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
  std::optional<api_error> error_; ///< to be told next
  bool over_ = false;              ///< nothing follows
  bool history_sent_ = false;
  std::uint64_t sample_sent_ = 0;
  std::uint64_t faults_sent_ = 0;
  monitor::subscription woken_;
};

} // namespace twill::net
