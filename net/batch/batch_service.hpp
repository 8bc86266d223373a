// batch_service: the files and batches of one server: it owns the file store, the batch table and
// the batch runner. If `batches.folder` is configured and no other process uses it, batches outlive
// the server.
//
// Thread safety: any thread may call all functions. The batch thread, to which the constructor's
// argument `thread` passes functions, must have ended before this object is destroyed, or must run
// no further function from then on.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "net/batch/batch_folder.hpp"
#include "net/batch/batch_runner.hpp"
#include "net/batch/batch_table.hpp"
#include "net/batch/file_store.hpp"
#include "net/protocol/field_table.hpp"

namespace twill::net {

/// The error for a client whose id names no batch of its tenant on this server.
api_error no_such_batch(const std::string& id, const std::string& server_name);

/// The fields that the body of POST /v1/batches may have, for "/openapi.json".
field_rows batch_rows();

class batch_service {
public:
  /// Reads the files and batches of earlier runs from a configured folder. Throws in the same cases
  /// as file_store's constructor.
  batch_service(server_context& context, batch_runner::thread_seam thread);

  /// Continues the batches of earlier runs. Call this once the server can accept requests.
  void begin() { runner_.begin(); }
  file_store& files() { return files_; }
  const batch_table& batches() const { return batches_; }

  /// Creates a batch from the body of POST /v1/batches.
  result<batch> create(const value& body, const std::string& tenant);
  result<batch> cancel(const std::string& id, const std::string& tenant);

  void stop() { runner_.stop(); }
  void on_timer() { runner_.on_timer(); }
  /// See batch_runner::account().
  void account(std::function<void(ledger)> callback) { runner_.account(std::move(callback)); }

private:
  std::optional<std::set<std::string>> read_folder();
  void restore(const batch& earlier);

  /// The share of the limits that one tenant may take; a configuration reload changes it.
  const std::function<double()> share_;
  const std::string server_name_;
  batch_folder folder_;
  std::vector<batch> earlier_; ///< batches of earlier runs, until they are restored
  file_store files_;
  batch_table batches_;
  batch_runner runner_;
};

} // namespace twill::net
