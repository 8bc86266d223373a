// Damaged weight files: opening such a file either fails with an error that names a file of the
// model, or every tensor that the damage cannot affect has its name, its shape and its bytes.
#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "models/checkpoint/gguf/file.hpp"
#include "models/checkpoint/pytorch/read.hpp"
#include "models/checkpoint/safetensors/read.hpp"
#include "models/checkpoint/weight_files.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/gguf_writer.hpp"
#include "tests/models/support/safetensors_writer.hpp"
#include "tests/models/support/temp_folder.hpp"
#include "tests/paths.hpp"
#include "tests/support/damage.hpp"

using namespace twill::models;
using namespace twill::test;

namespace {

/// What a file holds, by name: for a tensor its type, its shape and its values.
using contents = std::map<std::string, std::string>;

/// Reads all that a file or a folder holds. Returns the error's text if it is refused.
using reader = std::function<std::pair<std::string, contents>(const std::string& path)>;

std::string described(const tensor_info& t) {
  return t.type + shape_text(t.shape) + std::to_string(t.bytes) + ": ";
}

contents contents_of(const tensor_table& table) {
  contents all;
  for (const tensor_info& t : table.tensors()) {
    const auto bytes = table.peek(t.name)->bytes;
    std::int64_t n_bytes = table.peek(t.name)->element->bytes;
    for (const std::int64_t extent : t.shape)
      n_bytes *= extent;
    if (n_bytes != t.bytes || n_bytes != std::ssize(bytes))
      throw std::runtime_error("tensor " + t.name + " has bytes for another shape");
    all[t.name] =
        described(t) + std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return all;
}

std::pair<std::string, contents> read_safetensors(const std::string& path) {
  tensor_table table;
  const auto read = safetensors::read_into(table, path);
  return {read.ok() ? "" : read.detail(), contents_of(table)};
}

std::pair<std::string, contents> read_pytorch(const std::string& path) {
  tensor_table table;
  const auto read = pytorch::read_into(table, path);
  return {read.ok() ? "" : read.detail(), contents_of(table)};
}

/// Reads the folder that has the file `path`.
std::pair<std::string, contents> read_shards(const std::string& path) {
  const auto read = read_weights(path.substr(0, path.rfind('/')), "");
  if (!read.ok()) return {read.detail(), {}};
  return {"", contents_of(*read.value())};
}

std::string text_of(const gguf::metadata::entry& entry) {
  const auto joined = [](const auto& list) {
    std::string all;
    for (const auto& one : list) {
      if constexpr (std::is_same_v<std::decay_t<decltype(one)>, std::string>)
        all += one + '\n';
      else
        all += std::to_string(one) + '\n';
    }
    return all;
  };
  return std::to_string(entry.index()) + ' ' +
         std::visit(
             [&](const auto& v) -> std::string {
               using type = std::decay_t<decltype(v)>;
               if constexpr (std::is_same_v<type, std::string>)
                 return v;
               else if constexpr (std::is_arithmetic_v<type>)
                 return std::to_string(v);
               else
                 return joined(v);
             },
             entry);
}

/// Reads a GGUF file. Its metadata keys count as contents, too.
std::pair<std::string, contents> read_gguf(const std::string& path) {
  const auto opened = gguf::file::open(path);
  if (!opened.ok()) return {opened.detail(), {}};
  contents all;
  for (const auto& [key, entry] : opened.value()->meta().entries)
    all[key] = text_of(entry);
  for (const tensor_info& t : opened.value()->tensors()) {
    std::string values;
    const auto matrix = opened.value()->matrix(t.name);
    if (matrix.ok() && matrix.value().kind == twill::gpu::weight_kind::f32) {
      for (std::int64_t r = 0; r < matrix.value().rows; ++r)
        values.append(static_cast<const char*>(matrix.value().dense_row(r)),
                      static_cast<std::size_t>(matrix.value().cols) * sizeof(float));
    } else if (const auto vector = opened.value()->vector(t.name); vector.ok()) {
      values.append(reinterpret_cast<const char*>(vector.value().data()),
                    vector.value().size() * sizeof(float));
    }
    all[t.name] = described(t) + values;
  }
  return {"", all};
}

struct damage_rules {
  /// What each damaged part may change, by the part's name. Any other part may change nothing.
  std::map<std::string, std::set<std::string>> reached;
  bool has_exact_size = true; ///< a file with missing or additional bytes is refused
};

/// Describes what is wrong after damage to the file `name` of `folder`; empty if nothing is.
std::string faults_of(const temp_folder& folder, const std::string& name,
                      const std::vector<part>& parts, const reader& read,
                      const damage_rules& rules) {
  std::ifstream in(folder.file(name), std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  const auto undamaged = read(folder.file(name));
  if (!undamaged.first.empty()) return "the undamaged file is refused: " + undamaged.first;
  int refused = 0;
  auto faults = faults_after_damage(
      whole, parts, [&](const damage& d, const std::string& damaged) -> std::string {
        folder.write(name, damaged);
        const auto [fault, is] = read(folder.file(name));
        if (!fault.empty()) {
          ++refused;
          // The error may name another file, because the damaged one may be a list of files.
          const bool named = fault.find(folder.path()) != std::string::npos;
          return named ? "" : "refused without a file's name: " + fault;
        }
        if (!d.within_part() && rules.has_exact_size) return "another size was not noticed";
        const auto reached = rules.reached.find(d.part);
        for (const auto& [key, was] : undamaged.second) {
          if (reached != rules.reached.end() && reached->second.contains(key)) continue;
          const auto found = is.find(key);
          if (found == is.end()) return "`" + key + "` is missing";
          if (found->second != was) return "`" + key + "` is another";
        }
        if (is.size() > undamaged.second.size() && reached == rules.reached.end())
          return "there is more than there was";
        return "";
      });
  folder.write(name, whole);
  if (faults.empty() && refused == 0) return "nothing was refused";
  return faults;
}

/// The parts of a safetensors file: its size field, each entry of the header, the text between the
/// entries, and the data of each tensor.
struct safetensors_parts {
  std::vector<sized> sizes{{"size of the header", 8}};
  damage_rules rules;
  safetensors_writer writer;
  std::vector<sized> data;

  void add(const std::string& name, const std::string& type, const std::vector<std::int64_t>& shape,
           const std::string& bytes) {
    const std::size_t before = writer.build().size();
    writer.add(name, type, shape, bytes);
    const std::size_t entry = writer.build().size() - before - bytes.size();
    const bool first = data.empty();
    sizes.push_back({first ? "the brace before" : "a comma", 1});
    sizes.push_back({"entry of " + name, entry - (first ? 0 : 1)});
    data.push_back({"data of " + name, bytes.size()});
    rules.reached["entry of " + name] = rules.reached["data of " + name] = {name};
  }
  std::vector<part> parts() const {
    auto all = sizes;
    all.push_back({"the brace behind", 1});
    all.insert(all.end(), data.begin(), data.end());
    return parts_in_order(all);
  }
};

std::string pattern(std::size_t size, int number) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<char>(1 + (i * 13 + static_cast<std::size_t>(number) * 71) % 60);
  return bytes;
}

/// Parts of a zip archive whose entries are stored: what is beside the entries, and each entry.
std::vector<part> parts_of_zip(const std::string& bytes, std::vector<std::string>& names) {
  const auto number = [&](std::size_t at, std::size_t n) {
    std::size_t value = 0;
    for (std::size_t i = n; i-- > 0;)
      value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
    return value;
  };
  std::vector<part> parts;
  std::size_t at = 0;
  while (bytes.compare(at, 4, "PK\3\4") == 0) {
    const std::size_t n_name = number(at + 26, 2), begin = at + 30 + n_name + number(at + 28, 2);
    const std::string name = bytes.substr(at + 30, n_name);
    const std::size_t n_bytes = number(at + 18, 4);
    for (const auto& [field, size] :
         std::vector<sized>{{"magic", 4},
                            {"method", 10},
                            {"sum", 4},
                            {"sizes", 8},
                            {"size of the name", 2},
                            {"size of the extra field", 2},
                            {"name", n_name},
                            {"extra field", begin - at - 30 - n_name}}) {
      const std::size_t from = parts.empty() ? 0 : parts.back().end;
      parts.push_back({"before " + name + ": " + field, from, from + size});
    }
    at = begin + n_bytes;
    parts.push_back({name, begin, at});
    names.push_back(name);
  }
  for (int n = 0; bytes.compare(at, 4, "PK\1\2") == 0; ++n) {
    const std::size_t rest = number(at + 28, 2) + number(at + 30, 2) + number(at + 32, 2);
    for (const auto& [field, size] : std::vector<sized>{{"magic and versions", 8},
                                                        {"flags", 2},
                                                        {"method", 2},
                                                        {"time and sum", 8},
                                                        {"stored size", 4},
                                                        {"size", 4},
                                                        {"sizes behind", 6},
                                                        {"attributes", 8},
                                                        {"place", 4},
                                                        {"name and extra field", rest}}) {
      parts.push_back({"record " + std::to_string(n) + ": " + field, at, at + size});
      at += size;
    }
  }
  parts.push_back({"end", at, bytes.size()});
  return parts;
}

} // namespace

TEST_CASE("damage to a safetensors file is refused or reaches one tensor alone", "[damage]") {
  safetensors_parts f;
  f.add("first", "F32", {3, 5}, pattern(60, 1));
  f.add("second", "BF16", {700}, pattern(1400, 2));
  f.add("none", "F32", {0}, "");
  f.add("last", "F16", {2, 3, 4}, pattern(48, 3));
  const temp_folder folder;
  folder.write("x.safetensors", f.writer.build());
  CHECK(faults_of(folder, "x.safetensors", f.parts(), read_safetensors, f.rules) == "");
}

TEST_CASE("damage to one of several safetensors files, or to their index, is refused or reaches "
          "one tensor alone",
          "[damage]") {
  const temp_folder folder;
  std::string map;
  std::vector<safetensors_parts> shards(3);
  const auto shard_name = [](std::size_t i) {
    return "model-0000" + std::to_string(i + 1) + "-of-00003.safetensors";
  };
  for (std::size_t i = 0; i < shards.size(); ++i) {
    for (const char* of : {"a", "b"}) {
      const std::string name = std::string(of) + std::to_string(i);
      shards[i].add(name, "F32", {2, 4}, pattern(32, static_cast<int>(i)));
      map += (map.empty() ? "" : ", ") + ("\"" + name) + "\": \"" + shard_name(i) + "\"";
    }
    folder.write(shard_name(i), shards[i].writer.build());
  }
  const std::string index = R"({"metadata": {"total_size": 192}, "weight_map": {)" + map + "}}\n";
  folder.write("model.safetensors.index.json", index);
  for (std::size_t i = 0; i < shards.size(); ++i) {
    CAPTURE(i);
    CHECK(faults_of(folder, shard_name(i), shards[i].parts(), read_shards, shards[i].rules) == "");
  }
}

namespace {

/// The parts of a GGUF file: the counts, each key, each entry of the tensor table, and the data.
struct gguf_parts {
  gguf_writer writer;
  std::vector<sized> head{{"magic", 4}, {"version", 4}, {"tensor count", 8}, {"key count", 8}};
  std::vector<sized> data;
  damage_rules rules;

  // A file is accepted without the padding behind its last tensor.
  gguf_parts() { rules.has_exact_size = false; }

  void pair(const std::string& key, std::uint32_t type, const std::string& value) {
    writer.add(key, type, value);
    head.push_back({"key " + key, 8 + key.size() + 4 + value.size()});
    rules.reached["key " + key] = {key};
  }
  void tensor(const std::string& name, const std::vector<std::uint64_t>& shape) {
    std::size_t n = 1;
    for (const auto extent : shape)
      n *= extent;
    const auto bytes = pattern(n * 4, static_cast<int>(n));
    writer.add_tensor(name, shape, 0, bytes);
    head.push_back({"entry of " + name, 8 + name.size() + 4 + 8 * shape.size() + 4 + 8});
    data.push_back({"data of " + name, bytes.size()});
    data.push_back({"padding behind " + name, (32 - bytes.size() % 32) % 32});
    rules.reached["entry of " + name] = rules.reached["data of " + name] = {name};
  }
  std::vector<part> parts() const {
    auto all = head;
    std::size_t end = 0;
    for (const sized& one : all)
      end += one.size;
    all.push_back({"padding of the head", (32 - end % 32) % 32});
    all.insert(all.end(), data.begin(), data.end());
    return parts_in_order(all);
  }
};

} // namespace

TEST_CASE("damage to a GGUF file is refused or reaches one key or one tensor alone", "[damage]") {
  gguf_parts f;
  f.pair("general.architecture", 8, raw_string("llama"));
  f.pair("a.number", 4, raw(std::uint32_t{77}));
  f.pair("a.flag", 7, raw(std::uint8_t{1}));
  f.pair("a.list", 9,
         raw(std::uint32_t{8}) + raw(std::uint64_t{2}) + raw_string("x") + raw_string("yz"));
  f.pair("a.ints", 9, raw(std::uint32_t{5}) + raw(std::uint64_t{3}) + raw(1) + raw(2) + raw(3));
  f.tensor("first.weight", {3, 5});
  f.tensor("second.weight", {4, 100});
  f.tensor("last.weight", {7});
  const temp_folder folder;
  folder.write("x.gguf", f.writer.build());
  CHECK(faults_of(folder, "x.gguf", f.parts(), read_gguf, f.rules) == "");
}

TEST_CASE("a GGUF file that counts other numbers of keys or tensors than it has is refused",
          "[damage]") {
  // The header may end at any distance from the aligned boundary at which the data begin. All
  // distances are tested, so that there are all lengths of padding, including none.
  for (std::size_t more = 0; more < 32; ++more) {
    gguf_writer writer;
    writer.add_string("general.name", std::string(more, 'x'));
    for (const char* key : {"a", "b", "c"})
      writer.add_u32(key, 3);
    for (std::uint64_t n = 1; n < 5; ++n)
      writer.add_tensor("w" + std::to_string(n), {n, 8}, 0, pattern(n * 32, static_cast<int>(n)));
    const temp_folder folder;
    const std::string whole = writer.build();
    folder.write("x.gguf", whole);
    REQUIRE(read_gguf(folder.file("x.gguf")).second.size() == 8);
    for (const std::size_t at : {8, 16}) // the number of tensors, the number of keys
      for (std::uint64_t count = 0; count < 10; ++count) {
        std::string damaged = whole;
        damaged.replace(at, 8, raw(count));
        folder.write("x.gguf", damaged);
        CAPTURE(more, at, count);
        CHECK(read_gguf(folder.file("x.gguf")).first.empty() == (count == 4));
      }
  }
}

TEST_CASE("damage to one of several GGUF files is refused or reaches one tensor alone",
          "[damage]") {
  std::vector<gguf_parts> files(3);
  const temp_folder folder;
  const auto name_of = [](std::size_t i) {
    return "x-0000" + std::to_string(i + 1) + "-of-00003.gguf";
  };
  for (std::size_t i = 0; i < files.size(); ++i) {
    gguf_parts& f = files[i];
    if (i == 0) f.pair("general.architecture", 8, raw_string("llama"));
    f.pair("split.no", 2, raw(static_cast<std::uint16_t>(i)));
    f.pair("split.count", 2, raw(std::uint16_t{3}));
    f.pair("split.tensors.count", 5, raw(std::int32_t{5}));
    for (std::size_t n = 0; n < (i == 1 ? 1 : 2); ++n)
      f.tensor("w" + std::to_string(i) + std::to_string(n), {2 + i, 8});
    folder.write(name_of(i), f.writer.build());
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    CAPTURE(i);
    CHECK(faults_of(folder, name_of(i), files[i].parts(), read_gguf, files[i].rules) == "");
  }
}

TEST_CASE("damage to a PyTorch file is refused or reaches the tensors of one storage alone",
          "[damage]") {
  for (const char* name : {"good_protocol2.bin", "good_protocol4.bin"}) {
    CAPTURE(name);
    const temp_folder folder;
    std::ifstream in(golden_dir() + "/pytorch/" + name, std::ios::binary);
    const std::string whole{std::istreambuf_iterator<char>(in), {}};
    folder.write("x.bin", whole);
    const auto undamaged = read_pytorch(folder.file("x.bin"));
    REQUIRE(undamaged.second.size() > 2);
    std::vector<std::string> names;
    const auto parts = parts_of_zip(whole, names);
    damage_rules rules;
    for (const part& p : parts) {
      auto& reached = rules.reached[p.name];
      for (const auto& [tensor, text] : undamaged.second) {
        const auto bytes = text.substr(text.find(": ") + 2);
        // The pickle has no checksum that all writers set, so damage to it may reach any tensor.
        if (p.name.ends_with("data.pkl") ||
            (p.name.find("/data/") != std::string::npos && !p.name.starts_with("before") &&
             whole.substr(p.begin, p.end - p.begin).find(bytes) != std::string::npos))
          reached.insert(tensor);
      }
      if (reached.empty()) rules.reached.erase(p.name);
    }
    rules.has_exact_size = false; // an archive may have a comment behind it
    CHECK(faults_of(folder, "x.bin", parts, read_pytorch, rules) == "");
  }
}
