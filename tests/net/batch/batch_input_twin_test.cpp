// A batch's input file, read once to check it and then line by line with some lines skipped, gives
// the same requests as splitting the whole file at its line ends. Blank lines count as lines but
// are no requests.
#include "net/batch/batch_input.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "tests/catch.hpp"
#include "tests/support/operations.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::test;

namespace {

const std::string endpoint = "/v1/completions";

struct row {
  std::string text; ///< without its line end
  std::string id;   ///< empty if the line is ill-formed
  std::string code; ///< the fault's code, if the line is ill-formed
  std::int64_t number = 0;
};

class file_of_lines {
public:
  explicit file_of_lines(const operations& sequence) {
    std::int64_t number = 0;
    for (const operation& op : sequence) {
      ++number;
      const bool last = static_cast<std::size_t>(number) == sequence.size();
      const std::string end = op.b % 3 == 0 ? "\r\n" : "\n";
      row one = row_of(op);
      one.number = number;
      bytes += one.text;
      // The last line of a file may have no line end.
      if (!(last && op.c % 2 == 0)) bytes += end;
      // At the end of a file, a carriage return without a line feed ends the line's text too.
      if (last && op.c % 4 == 0) bytes += "\r";
      if (one.text.find_first_not_of(" \t\r") != std::string::npos) rows.push_back(std::move(one));
    }
  }

  std::string bytes;
  std::vector<row> rows; ///< the lines that are not blank

private:
  row row_of(const operation& op) {
    const std::string long_text(op.b % 16 == 5 ? 70'000 : op.b % 16 == 6 ? 4095 : op.b % 9, 'w');
    // There are few ids, so that some occur twice, and they have common prefixes.
    const std::string id = std::string(1 + op.a % 5, 'i') + (op.a % 3 == 0 ? "" : "d");
    const auto line = [&](const std::string& custom_id, const std::string& method,
                          const std::string& url, const std::string& body) {
      return R"({"custom_id":)" + custom_id + R"(,"method":")" + method + R"(","url":")" + url +
             R"(","body":)" + body + "}";
    };
    const std::string body = R"({"prompt":")" + long_text + "\"}";
    switch (op.kind % 16) {
    case 0:
      return {"", "", "", 0};
    case 1:
      return {" \t ", "", "", 0};
    case 2:
      return {"{" + long_text, "", "invalid_json_line", 0};
    case 3:
      return {"[1]", "", "invalid_json_line", 0};
    case 4:
      return {line("\"\"", "POST", endpoint, body), "", "invalid_value", 0};
    case 5:
      return {line("\"" + std::string(513, 'i') + "\"", "POST", endpoint, body), "",
              "invalid_value", 0};
    case 6:
      return {line("\"" + std::string(512, 'i') + "\"", "POST", endpoint, body),
              std::string(512, 'i'), "", 0};
    case 7:
      return {line("\"" + id + "\"", "GET", endpoint, body), "", "invalid_value", 0};
    case 8:
      return {line("\"" + id + "\"", "POST", "/v1/embeddings", body), "", "invalid_value", 0};
    case 9:
      return {line("\"" + id + "\"", "POST", endpoint, "3"), "", "invalid_value", 0};
    case 10: // blanks around the object belong to the line
      return {"  " + line("\"" + id + "\"", "POST", endpoint, body) + "\t", id, "", 0};
    default:
      return {line("\"" + id + "\"", "POST", endpoint, body), id, "", 0};
    }
  }
};

class reading {
public:
  reading(file_store& files, const file_of_lines& file) : file_(file) {
    const auto put = files.put({.tenant = "a", .filename = "f", .purpose = "batch"}, file.bytes);
    demand(put.ok(), "the file is stored");
    id_ = put.value().id;
    demand(files.hold(id_), "the file is held");
    in_.emplace(files, id_);
  }

  const std::string& id() const { return id_; }

  void check() {
    std::vector<row> faults;
    std::set<std::string> ids;
    std::int64_t total = 0;
    for (const row& one : file_.rows) {
      if (faults.size() == 100) break;
      ++total;
      if (one.id.empty())
        faults.push_back(one);
      else if (!ids.insert(one.id).second)
        faults.push_back({one.text, one.id, "duplicate_custom_id", one.number});
    }
    if (total == 0) faults.push_back({"", "", "empty_file", 0});
    const auto verdict = in_->check(endpoint);
    demand_equal(verdict.total, total, "the requests of a file");
    demand_equal(verdict.faults.size(), faults.size(), "the faults of a file");
    for (std::size_t i = 0; i < faults.size(); ++i) {
      demand(verdict.faults[i].code == faults[i].code, "which fault it is");
      demand_equal(verdict.faults[i].line, faults[i].number, "the line of a fault");
    }
    passed_.clear(); // after check(), only the lines of skip() are passed over
    for (const row& one : file_.rows)
      if (skipped_.contains(one.id)) passed_.insert(one.number);
    at_ = 0;
  }

  void skip(std::unordered_set<std::string> ids) {
    skipped_ = std::move(ids);
    skipped_.erase("");
    std::int64_t left = 0;
    passed_.clear();
    for (const row& one : file_.rows)
      if (!one.id.empty() && skipped_.contains(one.id))
        passed_.insert(one.number);
      else
        ++left;
    const auto found = in_->skip(skipped_, endpoint);
    demand(found.has_value(), "a file that is there can be read");
    demand_equal(*found, left, "the lines that are left");
    at_ = 0;
  }

  /// Reads up to `most` lines. Each bit of `puts_back` that is set puts one line back, once.
  void read_on(std::uint32_t most, std::uint32_t puts_back) {
    for (std::uint32_t i = 0; i < most; ++i) {
      while (at_ < file_.rows.size() && passed_.contains(file_.rows[at_].number))
        ++at_;
      auto line = in_->next();
      demand(line.has_value() == at_ < file_.rows.size(), "where the file ends");
      if (!line.has_value()) return;
      demand(*line == file_.rows[at_].text, "which line is next");
      if ((puts_back >> i % 8 & 1) != 0)
        in_->put_back(std::move(*line));
      else
        ++at_;
      puts_back &= ~(1u << i % 8);
    }
  }

private:
  const file_of_lines& file_;
  std::string id_;
  std::optional<batch_input> in_;
  std::unordered_set<std::string> skipped_;
  std::set<std::int64_t> passed_;
  std::size_t at_ = 0;
};

/// The ids of some rows, perhaps with an id that no row has.
std::unordered_set<std::string> ids_of(const file_of_lines& file, const operation& op) {
  std::unordered_set<std::string> ids;
  for (std::size_t i = 0; i < file.rows.size(); ++i)
    if ((op.b >> i % 16 & 1) != 0) ids.insert(file.rows[i].id);
  if (op.c % 3 == 0) ids.insert("nobody's");
  return ids;
}

} // namespace

TEST_CASE("A batch's input is read as its lines, from any set of them that are left") {
  file_store files("", 1 << 30);
  CHECK(first_failure({.cases = 3000, .long_cases = 100'000, .most_operations = 40},
                      [&](const operations& sequence) {
                        const file_of_lines file(sequence);
                        const operation how = sequence.empty() ? operation{} : sequence.back();
                        std::string id;
                        {
                          reading one(files, file);
                          id = one.id();
                          if (how.a % 2 == 0) one.check();
                          if (how.a % 4 == 3) one.skip({});
                          if (how.b % 4 != 0) one.skip(ids_of(file, how));
                          if (how.c % 8 == 7) one.skip(ids_of(file, {0, 0, how.a, how.b}));
                          if (how.c % 5 == 1) one.check();
                          one.read_on(1000, how.c);
                          demand(!files.erase(id, "a").ok(), "a file that is read is held");
                        }
                        demand(files.erase(id, "a").ok(), "one that was read is not held");
                      }) == "");
}

TEST_CASE("A batch's input has at most 50,000 requests, whatever its blank lines") {
  file_store files("", 1 << 30);
  for (const int n : {50'000, 50'001}) {
    std::string bytes;
    for (int i = 0; i < n; ++i) {
      if (i % 10'000 == 0) bytes += "\n \r\n";
      bytes += R"({"custom_id":")" + std::to_string(i) +
               R"(","method":"POST","url":"/v1/completions","body":{}})" + "\n";
    }
    const auto put = files.put({.tenant = "a", .filename = "f", .purpose = "batch"}, bytes);
    REQUIRE(put.ok());
    REQUIRE(files.hold(put.value().id));
    batch_input in(files, put.value().id);
    const auto verdict = in.check(endpoint);
    if (n == 50'000) {
      CHECK(verdict.faults.empty());
      CHECK(verdict.total == n);
    } else {
      REQUIRE(verdict.faults.size() == 1);
      CHECK(verdict.faults[0].code == "too_many_requests");
      CHECK(verdict.faults[0].line == 50'001 + 2 * 6);
    }
  }
}
