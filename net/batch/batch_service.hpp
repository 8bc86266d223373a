// batch_service: files and batches of one server: the store, the table, and who runs them.
//
// Thread safety: any thread. The batch thread that `thread` reaches must have ended, or never run
// again, before this is destroyed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "net/batch/batch_runner.hpp"
#include "net/batch/batch_table.hpp"
#include "net/batch/file_store.hpp"

namespace twill::net {

/// What to tell a client whose id names no batch of its tenant on this server.
api_error no_such_batch(const std::string& id, const std::string& server_name);

class batch_service {
public:
  batch_service(server_context& context, batch_runner::thread_seam thread)
      : share_([&context] {
          const bool several = context.current.get()->keys.several_tenants();
          return several ? context.options.batches.tenant_share : 1.0;
        }),
        server_name_(context.options.server.name),
        files_(context.options.batches.folder, context.options.batches.max_folder_bytes, share_,
               server_name_),
        runner_(context, files_, batches_, std::move(thread)) {}

  file_store& files() { return files_; }
  const batch_table& batches() const { return batches_; }

  /// Creates a batch from the body of POST /v1/batches.
  result<batch> create(const value& body, const std::string& tenant);
  result<batch> cancel(const std::string& id, const std::string& tenant);

  void stop() { runner_.stop(); }
  void on_timer() { runner_.on_timer(); }

private:
  const std::function<double()> share_; ///< that one tenant may hold now; a reload changes it
  const std::string server_name_;
  file_store files_;
  batch_table batches_;
  batch_runner runner_;
};

} // namespace twill::net
