// Which chat templates the files of a model provide. The oracle is transformers, whose choice
// tools/golden/chat_template_files.py recorded for each folder.
#include "models/text/template_sources.hpp"

#include <filesystem>
#include <map>
#include <string>

#include "config/base/json_text.hpp"
#include "models/checkpoint/gguf/metadata.hpp"
#include "models/checkpoint/json.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/temp_folder.hpp"
#include "tests/paths.hpp"
#include "tests/support/json.hpp"

using namespace twill;
using namespace twill::models;

namespace {

using named = std::map<std::string, std::string>;

named names_of(const template_sources& sources) {
  named out(sources.others.begin(), sources.others.end());
  if (!sources.main.empty()) out[default_template_name] = sources.main;
  return out;
}

value list_of_templates(std::initializer_list<std::pair<const char*, value>> entries) {
  value_list list;
  for (const auto& [name, source] : entries)
    list.push_back(value_object{{"name", name}, {"template", source}});
  return value_object{{"chat_template", std::move(list)}};
}

bool holds(const std::vector<std::string>& faults, const std::string& part) {
  for (const auto& fault : faults)
    if (fault.find(part) != std::string::npos) return true;
  return false;
}

} // namespace

TEST_CASE("a folder's chat templates are those that transformers takes", "[golden]") {
  const value golden = test::read_json_file(test::golden_dir() + "/chat/template_files.json");
  std::size_t n = 0;
  for (const value& one : test::list_of(test::at(golden, "cases"))) {
    INFO(test::text_of(test::at(one, "name")));
    const test::temp_folder folder;
    value config;
    for (const auto& [name, content] : *test::at(one, "files").as_object()) {
      if (name == "tokenizer_config.json") {
        config = content;
        continue;
      }
      std::filesystem::create_directories(std::filesystem::path(folder.file(name)).parent_path());
      folder.write(name, test::text_of(content));
    }
    named expected;
    for (const auto& [name, source] : *test::at(one, "loaded").as_object())
      expected[name] = test::text_of(source);
    const auto sources = folder_template_sources(folder.path(), &config);
    CHECK(names_of(sources) == expected);
    CHECK(sources.faults.empty());
    ++n;
  }
  CHECK(n >= 12);
}

TEST_CASE("chat_template.json counts where nothing else does, and a default is taken from where "
          "there is one") {
  const test::temp_folder folder;
  CHECK(folder_template_sources(folder.path(), nullptr).empty());
  folder.write("chat_template.json", R"({"chat_template": "processor"})");
  CHECK(folder_template_sources(folder.path(), nullptr).main == "processor");
  const value config(value_object{{"chat_template", "text"}});
  CHECK(folder_template_sources(folder.path(), &config).main == "text");
  const value null_config(value_object{{"chat_template", nullptr}});
  CHECK(folder_template_sources(folder.path(), &null_config).main == "processor");
  std::filesystem::create_directories(folder.file("additional_chat_templates"));
  folder.write("additional_chat_templates/tool_use.jinja", "more tools");
  CHECK(names_of(folder_template_sources(folder.path(), &config)) ==
        named{{"default", "text"}, {"tool_use", "more tools"}});
  folder.write("chat_template.jinja", "file");
  CHECK(folder_template_sources(folder.path(), &config).main == "file");
}

TEST_CASE("a chat template that cannot be had is named and does not hurt the others") {
  const test::temp_folder folder;
  const value config = list_of_templates(
      {{"default", "good"}, {"tool_use", value(std::string((1 << 20) + 1, 'x'))}, {"rag", 5}});
  const auto sources = folder_template_sources(folder.path(), &config);
  CHECK(names_of(sources) == named{{"default", "good"}});
  CHECK(holds(sources.faults, "\"tool_use\" must be at most 1048576 bytes, got 1048577"));
  CHECK(holds(sources.faults, "tokenizer_config.json: names and templates"));

  for (const char* odd : {R"({"chat_template": 5})", R"({"chat_template": [5, {"name": "x"}]})"}) {
    INFO(odd);
    const value given = parse_json(odd, "odd").value();
    const auto none = folder_template_sources(folder.path(), &given);
    CHECK(none.empty());
    CHECK_FALSE(none.faults.empty());
  }
  folder.write("chat_template.json", "{");
  CHECK(holds(folder_template_sources(folder.path(), nullptr).faults, "chat_template.json"));
  std::filesystem::create_directories(folder.file("additional_chat_templates/tool_use.jinja"));
  const auto with_folder = folder_template_sources(folder.path(), &config);
  CHECK(with_folder.main == "good");
  CHECK(holds(with_folder.faults, "tool_use.jinja: is not a regular file"));

  value_list many;
  for (int i = 0; i < 1000; ++i)
    many.push_back(value_object{{"name", "n" + std::to_string(i)}, {"template", "x"}});
  const value listed(value_object{{"chat_template", std::move(many)}});
  CHECK(folder_template_sources(folder.path(), &listed).others.size() == 64);
  for (int i = 0; i < 70; ++i)
    folder.write("additional_chat_templates/n" + std::to_string(i) + ".jinja", "x");
  const auto files = folder_template_sources(folder.path(), nullptr);
  CHECK(files.others.size() == 64);
  CHECK(holds(files.faults, "at most 64 templates, got 71"));
}

TEST_CASE("a GGUF file's chat templates are named in their keys") {
  gguf::metadata meta;
  CHECK(gguf_template_sources(meta).empty());
  meta.entries["tokenizer.chat_template"] = std::string("main");
  meta.entries["tokenizer.chat_template.tool_use"] = std::string("tools");
  meta.entries["tokenizer.chat_template.rag"] = std::string("rag");
  meta.entries["tokenizer.chat_templates"] = gguf::string_array{"tool_use", "rag"};
  const auto sources = gguf_template_sources(meta);
  CHECK(names_of(sources) == named{{"default", "main"}, {"tool_use", "tools"}, {"rag", "rag"}});
  CHECK(sources.faults.empty());
  meta.entries["tokenizer.chat_template.tool_use"] = std::int64_t{5};
  CHECK(holds(gguf_template_sources(meta).faults, "`tokenizer.chat_template.tool_use`"));
}
