// batch_input: the input file of a batch, which is read twice: once to check it, and once line by
// line.
//
// Used only on the batch thread. The creator of the batch must have called file_store::hold() for
// the file, so that nobody can delete the file; the destructor of batch_input calls release(). The
// file_store must outlive this object.
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
    std::int64_t total = 0;          ///< number of lines that are not blank
  };
  /// Reads the whole file and then returns to its beginning.
  verdict check(const std::string& endpoint);

  /// Makes next() skip the lines with these ids, and returns to the beginning of the file. Returns
  /// how many lines remain, or nothing if the file cannot be read.
  std::optional<std::int64_t> skip(const std::unordered_set<std::string>& custom_ids,
                                   const std::string& endpoint);

  /// Returns the next line that is not blank, or nothing at the end of the file.
  std::optional<std::string> next();
  /// Makes next() return `line` again.
  void put_back(std::string line) { held_ = std::move(line); }

private:
  bool read(std::string& text);
  void rewind();

  file_store& files_;
  std::string file_id_;
  std::unique_ptr<std::ifstream> in_;
  std::int64_t number_ = 0;   ///< number of the last line read, counted from 1
  std::vector<bool> skipped_; ///< by line number; lines beyond its end are not skipped
  std::optional<std::string> held_;
};

} // namespace twill::net
