// json_lines: the file of --json, which gets one JSON text a line as results come.
//
// Each line reaches the system at once, so that a program that is killed leaves all of them. One
// thread. Throws std::runtime_error, naming --json and the file, where it cannot be written.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

namespace twill::bench {

class json_lines {
public:
  /// An empty path: lines are dropped.
  explicit json_lines(const std::string& path);
  void write(const std::string& json);

private:
  struct closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, closer> file_;
};

} // namespace twill::bench
