// batch_output: the output and the error file of a batch, each created at its first line.
//
// It is used on the batch thread alone. Files that are not published are removed with it, unless
// the batch outlives the daemon: then they have been named to the batch, and another batch_output
// goes on with them. The store must outlive it.
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

  /// Called with the id of a file before its first line is written; when it fails, nothing is.
  using name_file = std::function<result<nothing>(file which, const std::string& id)>;

  /// Without `name` the files do not outlive this.
  batch_output(file_store& files, std::string tenant, name_file name)
      : files_(files), tenant_(std::move(tenant)), name_(std::move(name)) {}

  result<nothing> write(file to, std::string_view line);

  /// Goes on with a file that was named earlier. One that is gone is created anew when needed.
  result<nothing> reopen(file which, const std::string& id);
  /// Adds the custom_id of each line to `ids` and returns how many lines there are. A line that is
  /// not whole is cut off, with all behind it: the process ended while it was written, or the power
  /// failed.
  result<std::int64_t> read_answers(file which, std::unordered_set<std::string>& ids);

  /// The file's id; empty when nothing was written to it.
  result<std::string> publish(file which, const std::string& filename);

  /// That `holder` has the bytes of the files that are not published.
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
