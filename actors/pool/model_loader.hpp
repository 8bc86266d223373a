// model_loader: runs a pool's long operations on threads of its own. One thread opens files, starts
// engines and ends them, one job after another in the order in which they were asked for. Each
// model that may have to be fetched has a further thread, which fetches its files before they are
// opened.
//
// Threads: any thread may call, also while it holds a mutex that the reports lock. Reports are
// called on the thread that did the job, while it holds no mutex of the loader. A report that
// throws std::bad_alloc must have changed nothing: its job is run again from the beginning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "actors/engine.hpp"
#include "actors/pool/job_thread.hpp"
#include "actors/pool/pool_parts.hpp"

namespace twill::actors {

class model_loader {
public:
  struct reports {
    /// Called before `opened` if fetching the model's files takes long.
    std::function<void(std::size_t model)> fetching;
    std::function<void(std::size_t model, result<opened_model>&)> opened;
    /// The engine is ready. If the report does not move it away, the engine ends after the report.
    std::function<void(std::size_t model, result<std::unique_ptr<engine>>&)> loaded;
    /// Returns the engine that is to end; no request is left in it.
    std::function<std::unique_ptr<engine>(std::size_t model)> give_up;
    /// The engine has ended, and its memory is free.
    std::function<void(std::size_t model)> left;
  };

  model_loader(std::size_t n_models, pool_parts parts, reports to);
  ~model_loader() { stop(); }
  model_loader(const model_loader&) = delete;
  model_loader& operator=(const model_loader&) = delete;

  /// Opens a model's files; files that may not be on this machine are fetched first.
  void open(std::size_t model);
  /// Starts an engine and waits until it is ready.
  void load(std::size_t model, std::shared_ptr<const opened_model> opened,
            std::int64_t grant_bytes);
  /// Ends an engine. `port` is its port, which must stay valid until the engine is given up.
  void end(std::size_t model, engine_port& port);
  /// Closes the files. Closing a large file takes a while.
  void close(std::shared_ptr<const opened_model> files);

  /// Gives up a load that is under way, waits for other jobs that are under way, and drops those
  /// that have not begun. No report follows.
  void stop();

private:
  void open_now(std::size_t model);
  void load_now(std::size_t model, const opened_model* opened, std::int64_t grant_bytes);
  void end_now(std::size_t model, engine_port& port);

  const pool_parts parts_;
  const reports to_;
  job_thread jobs_;
  std::vector<std::unique_ptr<job_thread>>
      fetches_; ///< one for each model; null if the model is not fetched
};

} // namespace twill::actors
