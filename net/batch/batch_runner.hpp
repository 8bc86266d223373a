// batch_runner: sends the lines of batches to the engine, at the same time as interactive requests
// run.
//
// Threads: all work is done on one batch thread, to which `thread_seam::post` passes functions;
// engine_requests passes the engine's events to that thread. submit(), cancel() and stop() may be
// called from any thread. adopt() must be called before all other functions.
// At most batches.max_running sequences run at once, over all batches. Tenants take turns line by
// line, and so do the batches of one tenant. A line is in memory only from its turn to its reply.
// If the engine's queue is full or a model cannot be served, the batch does not fail but waits, at
// most until its completion window ends; other batches continue.
// If the descriptions of batches are kept on disk (see batch_folder), stop() leaves batches as they
// are, and adopt() continues them in the next run: lines whose replies are in the files are not
// sent again.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "config/base/ledger.hpp"
#include "net/batch/batch_folder.hpp"
#include "net/batch/batch_table.hpp"
#include "net/batch/file_store.hpp"
#include "net/connection/engine_requests.hpp"
#include "net/protocol/codec.hpp"
#include "net/server_context.hpp"

namespace twill::net {

class batch_runner {
public:
  /// Functions that connect the runner to the batch thread.
  struct thread_seam {
    std::function<void(std::function<void()>)> post;
    /// A function that calls on_timer() once after the given time. A later call replaces an earlier
    /// one. It must be called on the batch thread.
    std::function<void(std::chrono::milliseconds)> wake_after;
  };

  batch_runner(server_context& context, file_store& files, batch_table& batches,
               batch_folder& folder, thread_seam thread);
  ~batch_runner();

  /// Takes over a batch of an earlier run. Its input file must already be held
  /// (file_store::hold()). The batch continues after begin().
  void adopt(const batch& earlier);
  void begin();
  void submit(const batch& queued);
  void cancel(const std::string& id);
  /// Ends all batches. If their descriptions are kept on disk, stop() instead leaves them for
  /// adopt() in the next run. Replies that have arrived stay in the output files.
  void stop();
  void on_timer();
  /// Calls `callback` on the batch thread with a list of the file bytes, requests and other counted
  /// resources that batches have taken (see config/base/ledger.hpp). If the runner ends before
  /// that, `callback` is destroyed without a call.
  void account(std::function<void(ledger)> callback);

private:
  using clock = std::chrono::steady_clock;
  struct active_batch;
  struct running_line;
  struct sent_request {
    std::shared_ptr<running_line> line;
    std::size_t index = 0;
  };

  std::shared_ptr<active_batch> open(const batch& record);
  void validate(const std::shared_ptr<active_batch>& opened);
  void resume(const std::shared_ptr<active_batch>& opened);
  std::optional<std::int64_t> find_answers(const std::shared_ptr<active_batch>& of);
  void leave(const std::shared_ptr<active_batch>& opened, const api_error& why);
  void run(const std::shared_ptr<active_batch>& opened);
  void pump();
  bool send_next();
  std::shared_ptr<running_line> next_line();
  std::vector<std::shared_ptr<active_batch>> in_turn();
  std::shared_ptr<running_line> open_line(const std::shared_ptr<active_batch>& from,
                                          const std::string& text);
  void send(const std::shared_ptr<running_line>& line);
  void on_events();
  void on_event(engine_requests::key key, actors::event&& ev);

  void end_line(const std::shared_ptr<running_line>& line, int status, const std::string& body);
  void drop_line(const std::shared_ptr<running_line>& line);
  bool write(active_batch& to, bool good, const std::string& text);
  void end_early(const std::shared_ptr<active_batch>& which, batch_status how,
                 const batch_fault& why);
  void end_cancelled(const std::shared_ptr<active_batch>& which);
  void end_expired(const std::shared_ptr<active_batch>& which);
  void put_away(const std::shared_ptr<active_batch>& which);
  void finish_if_done(const std::shared_ptr<active_batch>& which);
  void close(active_batch& which, batch_status how);
  void arm(clock::time_point began);
  void account_batch(const active_batch& one, ledger& to) const;
  void account_sent(ledger& to) const;

  server_context& context_;
  file_store& files_;
  batch_table& batches_;
  batch_folder& folder_;
  thread_seam thread_;
  engine_requests requests_;
  /// Batches of an earlier run, until they continue after begin().
  std::list<std::shared_ptr<active_batch>> adopted_;
  /// Batches that are left for the next start; they still hold their input files.
  std::vector<std::shared_ptr<active_batch>> left_;
  /// Running batches; those of one tenant stand in the order of their turns.
  std::list<std::shared_ptr<active_batch>> active_;
  /// For each tenant, the number of its last turn.
  std::unordered_map<std::string, std::uint64_t> turns_;
  std::uint64_t last_turn_ = 0;
  std::list<std::shared_ptr<running_line>> lines_;
  std::unordered_map<engine_requests::key, sent_request> sent_;
  std::int32_t sequences_ = 0;
  bool stopped_ = false;
};

} // namespace twill::net
