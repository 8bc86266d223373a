// Damaged JSON texts are refused exactly if the grammar refuses them, and otherwise have the value
// that a naive reader gives.
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "models/checkpoint/json.hpp"
#include "models/checkpoint/tensor_table.hpp"
#include "models/checkpoint/weight_files.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/naive_json.hpp"
#include "tests/models/support/safetensors_writer.hpp"
#include "tests/models/support/temp_folder.hpp"
#include "tests/models/support/text_parts.hpp"
#include "tests/support/damage.hpp"
#include "tests/support/operations.hpp"

using namespace twill::models;
using namespace twill::test;
using twill::value;

namespace {

const std::string every_type =
    "{\n\t\"text\": \"a\\u00e9\\n\\\"\xC3\xA9\\ud83d\\ude00\xF0\x9F\x98\x80\xE4\xBD\xA0\", "
    "\"n\": [0, -1, 12.5e+3, 1E-2, 9223372036854775808, -0],\r\n"
    "\"b\": [true, false, null, {}, [], \"\"], \"n\": {\"x\": {\"y\": [[1], 2]}, \"x\": 7}}\n";

/// Describes what is wrong with the reading of `text`; empty if nothing is.
std::string fault_of_text(const std::string& text) {
  const auto expected = naive_json(text);
  const auto is = twill::models::parse_json(text, "the text");
  if (is.ok() != expected.has_value())
    return is.ok() ? "is no JSON, and is read" : "is JSON, and is refused: " + is.detail();
  if (!is.ok())
    return is.detail().starts_with("the text") ? "" : "refused without its name: " + is.detail();
  return is.value() == *expected ? "" : "another value";
}

} // namespace

TEST_CASE("JSON with any byte another, missing or added is refused or read as its grammar says",
          "[damage]") {
  REQUIRE(fault_of_text(every_type) == "");
  std::string faults;
  const auto examine = [&](const std::string& text, const std::string& what) {
    if (const auto fault = fault_of_text(text); !fault.empty() && faults.size() < 500)
      faults += what + ": " + fault + '\n';
  };
  for (std::size_t at = 0; at <= every_type.size(); ++at) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string text = every_type;
      const std::string where = std::to_string(byte) + " at " + std::to_string(at);
      examine(text.insert(at, 1, static_cast<char>(byte)), "added " + where);
      if (at == every_type.size()) continue;
      text.erase(at + 1, 1);
      examine(text, "put " + where);
    }
    examine(every_type.substr(0, at), "cut at " + std::to_string(at));
    examine(every_type.substr(at), "begun at " + std::to_string(at));
    if (at < every_type.size())
      examine(std::string(every_type).erase(at, 1), "missing at " + std::to_string(at));
  }
  CHECK(faults == "");
}

TEST_CASE(
    "JSON whose pieces were moved, repeated or dropped is refused or read as its grammar says",
    "[damage]") {
  static const char* const pieces[] = {"{",
                                       "}",
                                       "[",
                                       "]",
                                       ",",
                                       ":",
                                       "\"",
                                       "\"a\"",
                                       "\"b\":1",
                                       "1",
                                       "-",
                                       ".5",
                                       "e9",
                                       "true",
                                       "null",
                                       "\\ud800",
                                       "\\u0041",
                                       " ",
                                       "\x01",
                                       "\xC3",
                                       "\xED\xA0\x80",
                                       "18446744073709551616"};
  sequences which;
  which.cases = 3000;
  which.most_operations = 12;
  CHECK(first_failure(which, [&](const operations& sequence) {
          std::string text = R"({"a": [1, {"b": "x"}], "c": -2.5e3})";
          for (const operation& op : sequence) {
            const std::size_t at = op.a % (text.size() + 1);
            if (op.kind % 3 == 0)
              text.erase(at, op.b % 4);
            else if (op.kind % 3 == 1)
              text.insert(at, pieces[op.b % std::size(pieces)]);
            else
              text.insert(at, text.substr(op.b % (text.size() + 1), op.c % 9));
          }
          const auto fault = fault_of_text(text);
          demand(fault.empty(), fault + ": " + text);
        }) == "");
}

namespace {

/// Names of the tensors by the shard that has them.
using shard_tensors = std::map<std::string, std::vector<std::string>>;

/// Describes what is wrong with the reading of a folder whose index is `text`.
std::string fault_of_index(const std::string& folder, const std::string& text,
                           const shard_tensors& shards) {
  const auto is = read_weights(folder, "");
  const auto index = naive_json(text);
  const value* map = index ? index->find("weight_map") : nullptr;
  bool must_refuse = map == nullptr || map->as_object() == nullptr || map->as_object()->empty();
  std::set<std::string> listed, present, files;
  if (!must_refuse)
    for (const auto& [tensor, file] : *map->as_object()) {
      must_refuse =
          must_refuse || file.as_string() == nullptr || !shards.contains(*file.as_string());
      if (must_refuse) break;
      files.insert(*file.as_string());
      listed.insert(tensor);
    }
  // A listed tensor that no file has is not refused here: the checks of the model report it.
  for (const std::string& file : files)
    for (const std::string& tensor : shards.at(file))
      if (const value* said = must_refuse ? nullptr : map->find(tensor);
          said != nullptr && *said != value(file))
        must_refuse = true;
  for (const std::string& file : files)
    for (const std::string& tensor : shards.at(file))
      present.insert(tensor);
  if (!is.ok())
    return !must_refuse                                          ? "refused: " + is.detail()
           : is.detail().find("index.json") == std::string::npos ? "refused without the file's name"
                                                                 : "";
  if (must_refuse) return "contradicts the shards, and is read";
  std::set<std::string> found;
  for (const tensor_info& t : is.value()->tensors())
    found.insert(t.name);
  if (found != present) return "has other tensors than the shards that it names";
  for (const std::string& tensor : listed)
    if (!is.value()->lists(tensor)) return "does not list " + tensor;
  for (const auto& [file, tensors] : shards)
    for (const std::string& tensor : tensors)
      if (is.value()->lists(tensor) != (listed.contains(tensor) || present.contains(tensor)))
        return "lists " + tensor + ", which is in no shard that it names";
  return "";
}

} // namespace

TEST_CASE("a damaged index of several safetensors files is refused or read as it is", "[damage]") {
  const temp_folder folder;
  shard_tensors shards;
  std::vector<std::pair<std::string, std::string>> entries;
  for (int i = 1; i <= 3; ++i) {
    const std::string file = "model-" + std::to_string(i) + ".safetensors";
    safetensors_writer writer;
    for (const char* of : {"a", "b"}) {
      const std::string tensor = of + std::to_string(i);
      writer.add(tensor, "F32", {2}, std::string(8, '\1'));
      shards[file].push_back(tensor);
      entries.emplace_back(tensor, file);
    }
    folder.write(file, writer.build());
  }
  const auto written = [](const auto& map) {
    std::string text = R"({"metadata": {"total_size": 48}, "weight_map": {)";
    for (std::size_t i = 0; i < map.size(); ++i)
      text += (i == 0 ? "\"" : ", \"") + map[i].first + "\": \"" + map[i].second + "\"";
    return text + "}}\n";
  };
  const std::string name = "model.safetensors.index.json";
  const auto fault_of = [&](const std::string& text) {
    folder.write(name, text);
    return fault_of_index(folder.path(), text, shards);
  };
  const std::string whole = written(entries);
  REQUIRE(fault_of(whole) == "");
  CHECK(faults_after_damage(whole, parts_of_text(whole.size(), 90),
                            [&](const damage&, const std::string& d) { return fault_of(d); }) ==
        "");

  // Entries that are missing, repeated or have the name or file of another entry.
  sequences which;
  which.cases = 300;
  which.most_operations = 5;
  CHECK(first_failure(which, [&](const operations& sequence) {
          auto changed = entries;
          for (const operation& op : sequence) {
            if (changed.empty()) break;
            const std::size_t at = op.a % changed.size(), other = op.b % changed.size();
            if (op.kind % 5 == 0) changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(at));
            if (op.kind % 5 == 1) changed.push_back(changed[at]);
            if (op.kind % 5 == 2) changed[at].second = changed[other].second;
            if (op.kind % 5 == 3) changed[at].first = changed[other].first;
            if (op.kind % 5 == 4) changed[at].first += 'x';
          }
          const auto fault = fault_of(written(changed));
          demand(fault.empty(), fault);
        }) == "");
}
