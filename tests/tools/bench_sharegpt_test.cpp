#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "tests/catch.hpp"
#include "tools/twill-bench/engine/workload.hpp"

using namespace twill::bench;

namespace {

/// One token per character, or no tokenizer at all.
struct letters final : token_service {
  bool works = true;
  std::optional<std::vector<std::int32_t>> tokenize(const std::string& text) override {
    if (!works) return std::nullopt;
    return std::vector<std::int32_t>(text.begin(), text.end());
  }
  std::optional<std::string> detokenize(const std::vector<std::int32_t>&) override { return {}; }
};

struct temporary_file {
  explicit temporary_file(const std::string& text)
      : path((std::filesystem::temp_directory_path() /
              ("twill-bench-" + std::to_string(getpid()) + ".json"))
                 .string()) {
    std::ofstream(path) << text;
  }
  ~temporary_file() { std::filesystem::remove(path); }
  std::string path;
};

workload load(const std::string& path, std::size_t n, letters& tokens) {
  serve_options options;
  options.dataset = "sharegpt";
  options.dataset_path = path;
  const workload_source source{options, true, {}, tokens, [] { return false; }};
  return make_workload(source, n, 1);
}

} // namespace

TEST_CASE("conversations become prompts, by vLLM's length limits") {
  const temporary_file file(R"([
    {"conversations":[{"from":"human","value":"a question"},{"from":"gpt","value":"an answer!"}]},
    {"conversations":[{"from":"human","value":"hm"},{"from":"gpt","value":"too short a prompt"}]},
    {"conversations":[{"from":"human","value":"no answer"}]},
    {"conversations":[{"from":"human","value":")" +
                            std::string(1100, 'x') +
                            R"("},{"from":"gpt","value":"too long a prompt"}]},
    {"other":1}, 5])");
  letters tokens;
  const workload loaded = load(file.path, 3, tokens);
  REQUIRE(loaded.prompts.size() == 3); // the only valid conversation, three times
  for (const prompt& one : loaded.prompts) {
    CHECK(one.text == "a question");
    CHECK(one.input_tokens == 10);
    CHECK(one.output_tokens == 10);
  }
  CHECK(loaded.remarks.size() == 1);
}

TEST_CASE("without a tokenizer the lengths of conversations are guessed and said to be") {
  const temporary_file file(
      R"([{"conversations":[{"value":"about twenty letters"},{"value":"about twenty letters"}]}])");
  letters tokens;
  tokens.works = false;
  const workload loaded = load(file.path, 1, tokens);
  REQUIRE(loaded.prompts.size() == 1);
  CHECK(loaded.prompts[0].input_tokens == 6);
  CHECK(loaded.remarks.size() == 1);
}

TEST_CASE("a data set that can't be used is refused") {
  letters tokens;
  CHECK_THROWS_AS(load("/no/such/file.json", 1, tokens), std::runtime_error);
  const temporary_file broken("[{");
  CHECK_THROWS(load(broken.path, 1, tokens));
}
