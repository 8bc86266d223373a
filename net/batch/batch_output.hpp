// batch_output: the output file and the error file of a batch. Each file is created when its first
// line is written.
//
// Used only on the batch thread. With a `name` callback, the files outlive the daemon: the callback
// records their ids in the batch, and a later batch_output can continue the files. Without the
// callback, the destructor removes the files that publish() has not made visible to clients. The
// file_store must outlive this object.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "net/batch/file_store.hpp"

namespace twill::net {

class batch_output {
public:
  enum class file { output, errors };

  /// A callback that records a file's id in the batch. It is called before the file's first line is
  /// written; if it fails, nothing is written.
  using name_file = std::function<result<nothing>(file which, const std::string& id)>;

  /// Without `name` the files are removed with this object unless they are published.
  batch_output(file_store& files, std::string tenant, name_file name)
      : files_(files), tenant_(std::move(tenant)), name_(std::move(name)) {}

  result<nothing> write(file to, std::string_view line);

  /// Continues the file `id` that an earlier batch_output created. If the file no longer exists, a
  /// new one is created when a line is written.
  result<nothing> reopen(file which, const std::string& id);
  /// Adds the custom_id of each line to `ids` and returns the number of lines. The file is cut off
  /// before the first incomplete line, which was left when the process ended or the power failed
  /// while the line was written.
  result<std::int64_t> read_answers(file which, std::unordered_set<std::string>& ids);

  /// Publishes a file and returns its id; the id is empty if nothing was written to the file.
  result<std::string> publish(file which, const std::string& filename);

  /// Reports to the ledger that `holder` holds the bytes of the files that are not published.
  void account(ledger& to, const std::string& holder) const;

private:
  std::unique_ptr<file_store::writer>& of(file which) {
    return which == file::output ? output_ : errors_;
  }

  file_store& files_;
  const std::string tenant_;
  const name_file name_;
  std::unique_ptr<file_store::writer> output_;
  std::unique_ptr<file_store::writer> errors_;
};

} // namespace twill::net
