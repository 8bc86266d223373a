// Damaged tokenizer files: opening such a file either fails with an error that names it, or every
// token that the damage cannot affect has its text.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "tests/catch.hpp"
#include "tests/models/support/folder_text.hpp"
#include "tests/models/support/temp_folder.hpp"
#include "tests/paths.hpp"
#include "tests/support/damage.hpp"

using namespace twill::models;
using namespace twill::test;

namespace {

/// The tokens [first, last) whose lines or pieces make up a part.
struct token_range {
  std::string name;
  std::size_t first = 0, last = 0;
};

struct token_parts {
  std::vector<sized> sizes;
  std::vector<token_range> ranges;

  /// Every 30th token is a part of its own; the 29 tokens up to the next one are one part.
  void add(std::size_t token, std::size_t bytes) {
    if (token % 30 < 2) {
      sizes.push_back({"token " + std::to_string(token), 0});
      ranges.push_back({sizes.back().name, token, token});
    }
    sizes.back().size += bytes;
    ranges.back().last = token + 1;
  }
};

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string faults_of(const std::string& folder, const std::string& family, const std::string& name,
                      const token_parts& parts) {
  const temp_folder copy(golden_dir() + "/tokenizers/" + folder);
  const auto whole = bytes_of(copy.file(name));
  const auto undamaged = open_folder_text(copy.path(), family);
  if (!undamaged.ok()) return undamaged.detail();
  const auto text_of = [](const tokenizer& text, std::size_t id) {
    return text.decode(std::vector<token_id>{static_cast<token_id>(id)}, false);
  };
  damage_options options;
  options.sparse = true;
  const std::size_t n_tokens = parts.ranges.back().last;
  int refused = 0;
  auto faults = faults_after_damage(
      whole, parts_in_order(parts.sizes),
      [&](const damage& d, const std::string& damaged) -> std::string {
        copy.write(name, damaged);
        const auto opened = open_folder_text(copy.path(), family);
        if (!opened.ok()) {
          ++refused;
          return opened.detail().find(name) != std::string::npos
                     ? ""
                     : "refused without the file's name: " + opened.detail();
        }
        std::size_t first = 0, last = 0; // the tokens that the damage may change
        for (const token_range& range : parts.ranges)
          if (range.name == d.part) {
            first = range.first;
            last = range.last + 1; // includes the next line, which a damaged newline changes
          }
        if (!d.within_part()) last = n_tokens;
        for (std::size_t id = 0; id < n_tokens; ++id)
          if ((id < first || id >= last) &&
              text_of(*opened.value(), id) != text_of(*undamaged.value(), id))
            return "token " + std::to_string(id) + " is another";
        return "";
      },
      options);
  return faults.empty() && refused == 0 ? "nothing was refused" : faults;
}

} // namespace

TEST_CASE("damage to a tiktoken file is refused or reaches the tokens of its lines alone",
          "[damage]") {
  const auto whole = bytes_of(golden_dir() + "/tokenizers/qwen-tiktoken/qwen.tiktoken");
  token_parts parts;
  std::size_t token = 0;
  for (std::size_t at = 0, end = 0; at < whole.size(); at = end, ++token) {
    end = std::min(whole.find('\n', at), whole.size() - 1) + 1;
    parts.add(token, end - at);
  }
  REQUIRE(token > 200);
  CHECK(faults_of("qwen-tiktoken", "qwen", "qwen.tiktoken", parts) == "");
}

TEST_CASE("a tiktoken file whose ranks do not count up is refused", "[damage]") {
  const temp_folder copy(golden_dir() + "/tokenizers/qwen-tiktoken");
  std::vector<std::string> lines;
  std::string line;
  for (const char c : bytes_of(copy.file("qwen.tiktoken"))) {
    line += c;
    if (c == '\n') lines.push_back(std::exchange(line, ""));
  }
  const auto is_read = [&](const std::vector<std::string>& all) {
    std::string text;
    for (const std::string& one : all)
      text += one;
    copy.write("qwen.tiktoken", text);
    return open_folder_text(copy.path(), "qwen").ok();
  };
  REQUIRE(is_read(lines));
  const std::size_t last = lines.size() - 1;
  for (const std::size_t at : {std::size_t{0}, std::size_t{1}, last / 2, last - 1, last}) {
    CAPTURE(at);
    const auto place = static_cast<std::ptrdiff_t>(at);
    auto changed = lines;
    changed.insert(changed.begin() + place, lines[at]);
    CHECK_FALSE(is_read(changed)); // the line is there twice
    changed = lines;
    changed.erase(changed.begin() + place);
    CHECK(is_read(changed) == (at == last)); // an id is missing, or the last one
    changed = lines;
    std::swap(changed[at], changed[at == last ? 0 : at + 1]);
    CHECK_FALSE(is_read(changed));
    changed = lines;
    changed[at].insert(changed[at].size() - 1, "x"); // a rank with more behind it
    CHECK_FALSE(is_read(changed));
    changed = lines;
    changed[at].insert(changed[at].size() - 1, "0"); // ten times the rank
    CHECK(is_read(changed) == (at == 0));            // 00 is 0
  }
}
