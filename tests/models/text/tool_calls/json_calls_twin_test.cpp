// Tool calls written as JSON, with members in any order and additional members of every type: the
// parser reports the calls that were written.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/catch.hpp"
#include "tests/models/text/tool_calls/parser_runner.hpp"
#include "tests/support/operations.hpp"

using namespace twill::test;
using namespace twill::models;

namespace {

const char* const values[] = {"1",        "-2.5e3",      "0",     "true",     "false",
                              "null",     "\"\"",        "\"x\"", "\"\\\"\"", "\"}\"",
                              "\"\\\\\"", "[]",          "{}",    "[1, [2]]", "[\"]\"]",
                              "1E+2",     "{\"a\": {}}", "\"é\"", "[{}]",     "{\"name\": 1}"};
const char* const names[] = {"f", "get_weather", "a-b", "x1"};
const char* const arguments[] = {"{}", "{\"a\": 1}", "{\"a\": {\"b\": [1, \"}\"]}, \"c\": null}",
                                 "{\"name\": \"n\", \"arguments\": {}}", "{ \"a\" : \"\\u00e9\" }"};
const char* const spaces[] = {"", " ", "\n  "};

template <std::size_t N>
std::string one_of(const char* const (&all)[N], std::uint32_t which) {
  return all[which % N];
}

/// One call with up to three members beside its name and arguments.
std::string written(const operation& o, bool any_members, seen_call& call) {
  call.name = one_of(names, o.a);
  call.arguments = one_of(arguments, o.a / 4);
  std::vector<std::pair<std::string, std::string>> members{
      {"name", "\"" + call.name + "\""},
      {o.a % 2 == 0 ? "arguments" : "parameters", call.arguments}};
  static const char* const known[] = {"type", "id"};
  static const char* const others[] = {"type", "id", "index", "names"};
  for (std::uint32_t i = 0; i < o.b % 3; ++i) {
    const std::uint32_t bits = o.b / (3 + 7 * i);
    const auto key = any_members ? others[(bits + i) % 4] : known[(bits + i) % 2];
    const auto at = static_cast<std::ptrdiff_t>(bits % (members.size() + 1));
    members.insert(members.begin() + at, {key, one_of(values, bits / 5)});
  }
  if (o.c % 3 == 0) std::reverse(members.begin(), members.end());
  const std::string space = one_of(spaces, o.c);
  std::string text = "{" + space;
  for (std::size_t i = 0; i < members.size(); ++i)
    text += (i > 0 ? "," + space : "") + "\"" + members[i].first + "\"" + space + ":" + space +
            members[i].second;
  return text + space + "}";
}

/// An answer with these calls, as models of the format write it.
std::string answer_of(const std::string& format, const std::vector<std::string>& calls) {
  std::string all;
  for (const std::string& call : calls)
    all += format == "hermes" ? "<tool_call>\n" + call + "\n</tool_call>\n"
                              : (all.empty()               ? ""
                                 : format == "llama3_json" ? "; "
                                                           : ", ") +
                                    call;
  if (format == "mistral") return "[TOOL_CALLS] [" + all + "]";
  if (format == "llama3_json") return "<|python_tag|>" + all;
  return format == "hermes" || calls.size() == 1 ? all : "[" + all + "]";
}

void check_calls(const std::string& format, const operations& sequence) {
  std::vector<seen_call> expected;
  std::vector<std::string> calls;
  // In formats without markers around calls, an object with other members is text.
  const bool has_marks = format == "hermes" || format == "mistral";
  for (const operation& o : sequence)
    calls.push_back(written(o, has_marks, expected.emplace_back()));
  if (calls.empty()) return;
  const std::string answer = answer_of(format, calls);
  parser_options options;
  options.calls = format_named(format);
  std::mt19937 random(sequence[0].c);
  for (const std::size_t longest : {std::size_t{1}, std::size_t{5}, answer.size()}) {
    const auto seen = summary(parse_in_pieces(options, answer, random, longest)).calls;
    std::string found;
    bool same = seen.size() == expected.size();
    for (std::size_t i = 0; i < seen.size(); ++i) {
      found += " " + seen[i].name + seen[i].arguments + (seen[i].complete ? "" : " (cut)");
      same = same && seen[i].name == expected[i].name && seen[i].complete &&
             seen[i].arguments == expected[i].arguments;
    }
    demand(same, "the calls of " + answer + " are" + found);
  }
}

} // namespace

TEST_CASE("tool calls: JSON calls with members of any type in any order are found") {
  for (const std::string format : {"hermes", "mistral", "llama3_json", "json"}) {
    INFO(format);
    CHECK(first_failure({1500, 100'000, 4},
                        [&](const operations& sequence) { check_calls(format, sequence); }) == "");
  }
}
