// Folders that were cloned without Git LFS: any file that twill opens may be an LFS pointer, and
// then the error says so.
#include <filesystem>
#include <set>
#include <string>

#include "models/checkpoint/lfs_pointer.hpp"
#include "models/model.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/golden_folder.hpp"
#include "tests/models/support/temp_folder.hpp"
#include "tests/paths.hpp"

using namespace twill::models;
using twill::test::temp_folder;

namespace {

// The example in the specification of Git LFS.
const std::string pointer =
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
    "size 12345\n";

void check_named(const std::string& path, const std::string& file,
                 const std::string& template_path = {}) {
  const auto m = open_model(path, template_path);
  REQUIRE_FALSE(m.ok());
  CAPTURE(m.detail());
  CHECK(m.code() == errc::file_unreadable);
  CHECK(m.detail().find(file + ": Git LFS has not fetched this file") != std::string::npos);
  CHECK(m.detail().find("`git lfs pull`") != std::string::npos);
}

} // namespace

TEST_CASE("a pointer of Git LFS is named, whichever file of a folder it stands for") {
  std::set<std::string> kinds;
  for (const std::string& name : twill::test::golden_folders()) {
    const std::string source = twill::test::golden_dir() + "/" + name;
    for (const auto& entry : std::filesystem::directory_iterator(source)) {
      const std::string file = entry.path().filename().string();
      if (file.starts_with("golden.") || file == "model.gguf") continue;
      if (file.starts_with("quant")) continue; // is not read where config.json says the same
      CAPTURE(name, file);
      const temp_folder at(source);
      at.write(file, pointer);
      check_named(at.path(), file);
      kinds.insert(file);
    }
  }
  CHECK(kinds.size() >= 15);
}

TEST_CASE("a pointer of Git LFS is named in the place of a GGUF file or a chat template") {
  const std::string source = twill::test::golden_dir() + "/llama3-style-tied-bf16";
  const temp_folder beside(source); // a folder with a config.json
  beside.write("model.gguf", pointer);
  check_named(beside.file("model.gguf"), "model.gguf");
  beside.write("chat_template.jinja", pointer);
  check_named(beside.path(), "chat_template.jinja");
  beside.remove("chat_template.jinja");
  std::filesystem::create_directory(beside.file("additional_chat_templates"));
  beside.write("additional_chat_templates/tool_use.jinja", pointer);
  check_named(beside.path(), "tool_use.jinja");

  const temp_folder alone;
  alone.write("model-00001-of-00002.gguf", pointer);
  check_named(alone.file("model-00001-of-00002.gguf"), "model-00001-of-00002.gguf");
  check_named(alone.path(), "model-00001-of-00002.gguf");
  alone.write("mine.jinja", pointer);
  check_named(source, "mine.jinja", alone.file("mine.jinja"));
}

TEST_CASE("only what Git LFS writes is a pointer") {
  CHECK(is_lfs_pointer(pointer));
  CHECK_FALSE(is_lfs_pointer(""));
  CHECK_FALSE(is_lfs_pointer("version https://git-lfs.github.com"));
  CHECK_FALSE(is_lfs_pointer("#version 0.2\na b\n"));
  CHECK_FALSE(is_lfs_pointer(pointer + std::string(1024, 'x')));
}
