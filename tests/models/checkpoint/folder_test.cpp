#include <string>
#include <vector>

#include "models/checkpoint/folder.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/safetensors_writer.hpp"
#include "tests/models/support/temp_folder.hpp"
#include "tests/paths.hpp"

using namespace twill::models;
namespace test = twill::test;
using test::raw_values;

namespace {

const std::string goldens = test::golden_dir();

std::string one_tensor(const std::string& name, float x) {
  test::safetensors_writer w;
  w.add(name, "F32", {1}, raw_values(std::vector<float>{x}));
  return w.build();
}

std::shared_ptr<const folder> open_good(const std::string& path) {
  auto opened = folder::open(path);
  if (!opened.ok()) FAIL(opened.detail());
  return opened.value();
}

float only_value(const folder& f, const std::string& name) {
  return f.weights()->vector(name).value().at(0);
}

void check_refused(const std::string& path, errc code, const std::string& words) {
  auto opened = folder::open(path);
  REQUIRE_FALSE(opened.ok());
  CAPTURE(opened.detail());
  CHECK(opened.code() == code);
  CHECK(opened.detail().find(words) != std::string::npos);
}

void write_index(const test::temp_folder& f, const std::string& map) {
  f.write("model.safetensors.index.json", "{\"weight_map\": {" + map + "}}");
}

} // namespace

TEST_CASE("every golden folder opens with its configuration and weights") {
  const std::string name = GENERATE(
      as<std::string>{}, "baichuan2-13b-tiny-bf16", "baichuan2-13b-tiny-gptq",
      "baichuan2-13b-tiny-gptq-actorder", "baichuan2-7b-tiny-fp16", "chatglm3-tiny-fp16",
      "llama-tiny-fp16", "llama-tiny-gptq", "llama3-style-tied-bf16", "mistral-swa-tiny-bf16",
      "mistral-tiny-awq", "mistral-tiny-bf16", "opt-350m-style-fp16", "opt-tiny-fp32",
      "qwen-v1-ntk-logn-bf16", "qwen-v1-tiny-bf16", "qwen-v1-tiny-fp32");
  CAPTURE(name);
  const auto f = open_good(goldens + "/" + name);
  REQUIRE(f->config().find("model_type") != nullptr);
  CHECK(f->generation_config() != nullptr);
  CHECK(f->tokenizer_config() != nullptr);
  const bool gptq = name.find("gptq") != std::string::npos;
  const bool awq = name.find("awq") != std::string::npos;
  CHECK(f->quantization() == (gptq ? "GPTQ-4" : awq ? "AWQ-4" : ""));
  int matrices = 0;
  for (const tensor_info& t : f->weights()->tensors()) {
    CAPTURE(t.name);
    CHECK(t.name.find(".qweight") == std::string::npos);
    REQUIRE(f->weights()->find(t.name) != nullptr);
    CHECK(f->weights()->find(t.name)->shape == t.shape);
    if (t.shape.size() != 2) {
      CHECK(f->weights()->vector(t.name).ok());
      continue;
    }
    const auto m = f->weights()->matrix(t.name);
    REQUIRE(m.ok());
    CHECK((m.value().rows == t.shape[0] && m.value().cols == t.shape[1]));
    ++matrices;
  }
  CHECK(matrices >= 8);
}

TEST_CASE("shards are read as their index says, from a folder or a file in it") {
  const auto whole = open_good(goldens + "/mistral-tiny-bf16");
  CHECK(whole->weights()->tensors().size() == 21);
  for (const char* file :
       {"config.json", "model.safetensors.index.json", "model-00001-of-00002.safetensors"}) {
    const auto named = open_good(goldens + "/mistral-tiny-bf16/" + std::string(file));
    CHECK(named->weights()->tensors().size() == 21);
    CHECK(named->path() == whole->path());
  }
}

TEST_CASE("an index that its shards contradict is an error naming tensor and shard") {
  const test::temp_folder f;
  f.write("config.json", "{}");
  f.write("a.safetensors", one_tensor("x", 1));
  f.write("b.safetensors", one_tensor("y", 2));
  write_index(f, R"("x": "a.safetensors", "y": "b.safetensors")");
  CHECK(only_value(*open_good(f.path()), "y") == 2);

  SECTION("a shard is missing") {
    f.remove("b.safetensors");
    check_refused(f.path(), errc::file_unreadable,
                  "the shard `b.safetensors` is not in the folder");
  }
  SECTION("a tensor is in no shard: an error only for the model that needs it") {
    write_index(f, R"("x": "a.safetensors", "z": "b.safetensors")");
    const auto opened = open_good(f.path());
    CHECK(opened->weights()->find("z") == nullptr);
    CHECK(opened->weights()->lists("z"));
    CHECK_FALSE(opened->weights()->lists("w"));
    CHECK(only_value(*opened, "y") == 2);
  }
  SECTION("a tensor is in another shard") {
    write_index(f, R"("x": "b.safetensors", "y": "a.safetensors")");
    check_refused(f.path(), errc::missing_tensor, "it is in ");
  }
  SECTION("a tensor is in two shards") {
    f.write("b.safetensors", one_tensor("x", 1));
    check_refused(f.path(), errc::bad_format, "and again in");
  }
  SECTION("an entry leaves the folder") {
    for (const char* name : {"../a.safetensors", "/etc/a.bin", "..", "", "sub/a.bin", "a.txt"}) {
      write_index(f, R"("x": ")" + std::string(name) + "\"");
      check_refused(f.path(), errc::bad_format, "in the folder");
    }
    write_index(f, R"("x": 5)");
    check_refused(f.path(), errc::bad_format, "in the folder");
  }
  SECTION("the index is empty or no index") {
    write_index(f, "");
    check_refused(f.path(), errc::bad_format, "weight_map");
    f.write("model.safetensors.index.json", "[]");
    check_refused(f.path(), errc::bad_format, "weight_map");
  }
}

TEST_CASE("weights of another name are found when they are the only ones, or when named") {
  const test::temp_folder f;
  f.write("config.json", "{}");
  check_refused(f.path(), errc::file_unreadable, "no weights");
  f.write("gptq_model-4bit-128g.safetensors", one_tensor("x", 1));
  CHECK(only_value(*open_good(f.path()), "x") == 1);
  f.write("other.safetensors", one_tensor("x", 2));
  check_refused(f.path(), errc::file_unreadable, "found 2");
  CHECK(only_value(*open_good(f.file("other.safetensors")), "x") == 2);
  f.write("model.safetensors", one_tensor("x", 3));
  CHECK(only_value(*open_good(f.path()), "x") == 3);
  CHECK(only_value(*open_good(f.file("other.safetensors")), "x") == 2);
}

TEST_CASE("a folder without a readable configuration is refused") {
  const test::temp_folder f;
  f.write("model.safetensors", one_tensor("x", 1));
  check_refused(f.path(), errc::file_unreadable, "no config.json");
  f.write("adapter_config.json", "{}");
  check_refused(f.path(), errc::file_unreadable, "got a LoRA adapter; merge it");
  f.write("config.json", "[1]");
  check_refused(f.path(), errc::bad_format, "object");
  f.write("config.json", "{\n\"a\" 1}");
  check_refused(f.path(), errc::bad_format, "config.json:2");
  f.write("config.json", "{}");
  f.write("generation_config.json", "{");
  check_refused(f.path(), errc::bad_format, "generation_config.json:1");
  check_refused(f.path() + "-absent", errc::file_unreadable, "-absent");
  f.write("notes.txt", "x");
  check_refused(f.file("notes.txt"), errc::unsupported, "model folder");
}
