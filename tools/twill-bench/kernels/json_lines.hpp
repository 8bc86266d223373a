// json_lines: the file of --json. It gets one line of JSON text for each result as soon as the
// result is known.
//
// Each line is passed to the operating system at once, so a program that is killed leaves all lines
// that it wrote. Only one thread at a time may use an object. Throws std::runtime_error, which
// names --json and the file, when the file cannot be written.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

namespace twill::bench {

class json_lines {
public:
  /// An empty path drops all lines.
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
