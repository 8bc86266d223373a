// batch_input: the input file of a batch, read twice: once to check it, once line by line.
//
// On the batch thread. Holds its file in the store, which must outlive it, so that nobody deletes
// it meanwhile; the hold itself was taken by whoever made the batch.
#pragma once

#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/batch/batch.hpp"
#include "net/batch/file_store.hpp"

namespace twill::net {

class batch_input {
public:
  batch_input(file_store& files, std::string file_id);
  ~batch_input();
  batch_input(const batch_input&) = delete;
  batch_input& operator=(const batch_input&) = delete;

  struct verdict {
    std::vector<batch_fault> faults; ///< none: the file is good
    std::int64_t total = 0;          ///< lines with something on them
  };
  /// Reads the file to its end; reading begins anew afterwards.
  verdict check(const std::string& endpoint);

  /// The next line that is not blank; none at the end.
  std::optional<std::string> next();
  /// Lets a line come again.
  void put_back(std::string line) { held_ = std::move(line); }

private:
  bool read(std::string& text);

  file_store& files_;
  std::string file_id_;
  std::unique_ptr<std::ifstream> in_;
  std::int64_t number_ = 0;
  std::optional<std::string> held_;
};

} // namespace twill::net
