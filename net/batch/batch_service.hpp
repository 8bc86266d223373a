// batch_service: files and batches of one server: the store, the table, and who runs them. Where
// `batches.folder` is configured and no other process uses it, batches outlive the server.
//
// Thread safety: any thread. The batch thread that `thread` reaches must have ended, or never run
// again, before this is destroyed.
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

/// What to tell a client whose id names no batch of its tenant on this server.
api_error no_such_batch(const std::string& id, const std::string& server_name);

/// What the body of POST /v1/batches may have, for "/openapi.json".
field_rows batch_rows();

class batch_service {
public:
  /// Reads what earlier runs left in a configured folder. Throws as file_store does.
  batch_service(server_context& context, batch_runner::thread_seam thread);

  /// Goes on with batches of earlier runs; when the server can take requests.
  void begin() { runner_.begin(); }
  file_store& files() { return files_; }
  const batch_table& batches() const { return batches_; }

  /// Creates a batch from the body of POST /v1/batches.
  result<batch> create(const value& body, const std::string& tenant);
  result<batch> cancel(const std::string& id, const std::string& tenant);

  void stop() { runner_.stop(); }
  void on_timer() { runner_.on_timer(); }
  /// See batch_runner.
  void account(std::function<void(ledger)> callback) { runner_.account(std::move(callback)); }

private:
  std::optional<std::set<std::string>> read_folder();
  void restore(const batch& earlier);

  const std::function<double()> share_; ///< that one tenant may hold now; a reload changes it
  const std::string server_name_;
  batch_folder folder_;
  std::vector<batch> earlier_; ///< until they are restored
  file_store files_;
  batch_table batches_;
  batch_runner runner_;
};

} // namespace twill::net
