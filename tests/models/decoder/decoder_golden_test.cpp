#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/checkpoint/gguf/file.hpp"
#include "models/families/registry.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/decoder_runner.hpp"
#include "tests/models/support/golden_folder.hpp"
#include "tests/models/support/safetensors.hpp"
#include "tests/paths.hpp"
#include "tests/support/json.hpp"

using namespace twill::models;
namespace gpu = twill::gpu;
namespace test = twill::test;
using test::chunk;
using test::id_list;
using test::logit_row;
using twill::value;

namespace {

constexpr double tolerance = 2e-3; // largest difference from golden logits in f32 compute

struct golden_case {
  explicit golden_case(const std::string& name) {
    const std::string folder = test::golden_dir() + "/" + name;
    auto opened = gguf::file::open(folder + "/model.gguf");
    if (!opened.ok()) throw std::runtime_error(opened.detail());
    file = opened.value();
    auto read = families::gguf_spec_of(file->meta(), *file);
    if (!read.ok()) throw std::runtime_error(read.detail());
    spec = read.value();
    golden = test::read_json_file(folder + "/golden.json");
    tensors = test::read_f32_tensors(folder + "/golden.safetensors");
  }

  const twill::value_list& prompts() const { return test::list_of(*golden.find("prompts")); }

  std::shared_ptr<const gguf::file> file;
  model_spec spec;
  value golden;
  std::map<std::string, std::vector<float>> tensors;
};

decoder_options small_options(gpu::compute_type compute = gpu::compute_type::f32,
                              gpu::dtype kv = gpu::dtype::f32) {
  decoder_options o;
  o.compute = compute;
  o.kv_type = kv;
  o.n_blocks = 128;
  o.max_step_tokens = 512;
  o.max_sequences = 16;
  o.max_logit_rows = 512;
  return o;
}

id_list ids(const value& list) {
  id_list out;
  for (const value& v : test::list_of(list))
    out.push_back(static_cast<std::int32_t>(*v.as_int()));
  return out;
}

} // namespace

TEST_CASE("no bound holds for a difference that is not a number", "[golden]") {
  CHECK(test::largest_difference({1, 2, 3}, {1, 2.5F, 3}) == 0.5);
  for (std::size_t at = 0; at < 3; ++at) {
    logit_row row = {1, 2, 3};
    row[at] = std::nanf("");
    CHECK_FALSE(test::largest_difference(row, {1, 2, 3}) < 1e9);
  }
  CHECK_FALSE(test::largest_difference({1, 2}, {1, 2, 3}) < 1e9);
}

TEST_CASE("the decoder gives the golden logits and greedy tokens of a GGUF file", "[golden]") {
  const std::string name = "llama3-style-tied-bf16";
  CAPTURE(name);
  const golden_case c(name);
  CHECK(c.spec.tied_head);
  test::decoder_runner runner(c.spec, *c.file, small_options());
  for (std::size_t p = 0; p < c.prompts().size(); ++p) {
    CAPTURE(p);
    const value& prompt = c.prompts()[p];
    const std::string key = "p" + std::to_string(p) + ".";
    const id_list prompt_ids = ids(*prompt.find("ids"));
    const auto rows = runner.step({{0, prompt_ids, true}});
    REQUIRE(rows.size() == prompt_ids.size());
    CHECK(test::largest_difference(rows.back(), c.tensors.at(key + "prompt_last_logits")) <
          tolerance);
    const auto& top_ids = test::list_of(*prompt.find("top5_ids"));
    const auto& top_logits = test::list_of(*prompt.find("top5_logits"));
    for (std::size_t t = 0; t < rows.size(); ++t)
      for (std::size_t k = 0; k < 5; ++k) {
        const auto id = static_cast<std::size_t>(*test::list_of(top_ids[t])[k].as_int());
        CHECK(rows[t][id] ==
              Approx(test::number_of(test::list_of(top_logits[t])[k])).margin(tolerance));
      }
    const id_list expected = ids(*prompt.find("greedy_ids"));
    id_list greedy;
    logit_row logits = rows.back();
    while (greedy.size() < expected.size()) {
      greedy.push_back(test::argmax(logits));
      logits = runner.step({{0, {greedy.back()}}}).front();
    }
    CHECK(greedy == expected);
    CHECK(test::largest_difference(logits, c.tensors.at(key + "final_logits")) < tolerance);
    runner.release(0);
  }
}

TEST_CASE("sequences of unequal length in one batch give bitwise what each gives alone") {
  const golden_case c("llama3-style-tied-bf16");
  const auto compute = GENERATE(gpu::compute_type::f32, gpu::compute_type::bf16);
  const auto kv = compute == gpu::compute_type::f32 ? gpu::dtype::f32 : gpu::dtype::f16;
  test::decoder_runner runner(c.spec, *c.file, small_options(compute, kv));
  std::vector<chunk> batch;
  std::vector<logit_row> alone_prompt, alone_next;
  for (std::size_t p = 0; p < c.prompts().size(); ++p) {
    const id_list prompt = ids(*c.prompts()[p].find("ids"));
    batch.push_back({static_cast<int>(p), prompt});
    alone_prompt.push_back(runner.step({{0, prompt}}).front());
    alone_next.push_back(runner.step({{0, {5}}}).front());
    runner.release(0);
  }
  CHECK(runner.step(batch) == alone_prompt);
  for (chunk& one : batch)
    one.ids = {5};
  CHECK(runner.step(batch) == alone_next);
}

TEST_CASE("a prompt cut into chunks of any size gives bitwise the logits of the whole") {
  const golden_case c("llama3-style-tied-bf16");
  const auto compute = GENERATE(gpu::compute_type::f32, gpu::compute_type::bf16);
  test::decoder_runner runner(c.spec, *c.file, small_options(compute));
  const id_list prompt = ids(*c.prompts()[3].find("ids")); // 70 tokens: several KV blocks
  const logit_row whole = runner.prefill(0, prompt, prompt.size());
  for (const std::size_t chunk_tokens : {1, 5, 16, 33, 64}) {
    CAPTURE(chunk_tokens);
    CHECK(runner.prefill(1, prompt, chunk_tokens) == whole);
    runner.release(1);
  }
}

TEST_CASE("prefill chunks and decodes share a step, and rows are returned as asked for") {
  const golden_case c("llama3-style-tied-bf16");
  test::decoder_runner runner(c.spec, *c.file, small_options());
  const id_list a = ids(*c.prompts()[2].find("ids")), b = ids(*c.prompts()[1].find("ids"));
  const auto all_a = runner.step({{0, a, true}});
  runner.release(0);
  runner.step({{1, b}});
  const logit_row next_b = runner.step({{1, {7}}}).front();
  runner.release(1);

  runner.step({{1, b}});
  runner.step({{0, id_list(a.begin(), a.begin() + 20)}});
  const auto mixed = runner.step({{1, {7}}, {0, id_list(a.begin() + 20, a.end()), true}});
  REQUIRE(mixed.size() == 1 + a.size() - 20);
  CHECK(mixed.front() == next_b);
  for (std::size_t i = 20; i < a.size(); ++i)
    CHECK(mixed[i - 19] == all_a[i]);
}

TEST_CASE("half-precision compute and KV stay within the golden's low-precision tolerance",
          "[golden]") {
  const std::string name = "llama3-style-tied-bf16";
  const golden_case c(name);
  const double wide = 0.436 * 3;
  test::decoder_runner runner(c.spec, *c.file,
                              small_options(gpu::compute_type::bf16, gpu::dtype::f16));
  for (std::size_t p = 0; p < c.prompts().size(); ++p) {
    const logit_row last = runner.prefill(0, ids(*c.prompts()[p].find("ids")), 64);
    CHECK(test::largest_difference(
              last, c.tensors.at("p" + std::to_string(p) + ".prompt_last_logits")) < wide);
    runner.release(0);
  }
}
