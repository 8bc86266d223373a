// batch_output: the output and the error file of a batch, each created at its first line.
//
// It is used on the batch thread alone. Files that are not published are removed with it. The store
// must outlive it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "net/batch/file_store.hpp"

namespace twill::net {

class batch_output {
public:
  batch_output(file_store& files, std::string tenant) : files_(files), tenant_(std::move(tenant)) {}

  enum class file { output, errors };

  result<nothing> write(file to, std::string_view line) {
    auto& writer = to == file::output ? output_ : errors_;
    if (!writer) {
      auto created = files_.create(tenant_);
      if (!created.ok()) return fail(created.code());
      writer = std::move(created).value();
    }
    return writer->append(line);
  }

  /// The file's id; empty when nothing was written to it.
  result<std::string> publish(file which, const std::string& filename) {
    const auto writer = std::move(which == file::output ? output_ : errors_);
    if (!writer || writer->bytes() == 0) return std::string();
    const auto created = writer->publish({"", tenant_, filename, "batch_output", 0, 0});
    if (!created.ok()) return fail(created.code());
    return created.value().id;
  }

private:
  file_store& files_;
  const std::string tenant_;
  std::unique_ptr<file_store::writer> output_;
  std::unique_ptr<file_store::writer> errors_;
};

} // namespace twill::net
