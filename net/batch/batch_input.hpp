// batch_input: the input file of a batch, read twice: once to check it, once line by line.
//
// It is used on the batch thread alone. Whoever creates the batch has taken a hold of the file, so
// that nobody deletes it; batch_input releases the hold. The store must outlive it.
#pragma once

#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
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
    std::vector<batch_fault> faults; ///< empty: the file is valid
    std::int64_t total = 0;          ///< lines that are not blank
  };
  /// Reads the file to its end; reading begins anew afterwards.
  verdict check(const std::string& endpoint);

  /// Has next() pass over the lines with these ids; reading begins anew. Returns how many lines are
  /// left, or none when the file cannot be read.
  std::optional<std::int64_t> skip(const std::unordered_set<std::string>& custom_ids,
                                   const std::string& endpoint);

  /// The next line that is not blank; none at the end.
  std::optional<std::string> next();
  /// Makes next() return this line again.
  void put_back(std::string line) { held_ = std::move(line); }

private:
  bool read(std::string& text);
  void rewind();

  file_store& files_;
  std::string file_id_;
  std::unique_ptr<std::ifstream> in_;
  std::int64_t number_ = 0;   ///< of the line that was read last, counted from 1
  std::vector<bool> skipped_; ///< by the number of the line; none behind its end is
  std::optional<std::string> held_;
};

} // namespace twill::net
