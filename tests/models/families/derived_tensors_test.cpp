// Checkpoints that contain buffers beside their weights, in every family and format: they open, and
// need no more memory than without the buffers.
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "models/checkpoint/derived_tensor.hpp"
#include "models/checkpoint/folder.hpp"
#include "models/checkpoint/gguf/file.hpp"
#include "models/compute.hpp"
#include "models/decoder/check_weights.hpp"
#include "models/families/registry.hpp"
#include "models/memory_estimate/memory_estimate.hpp"
#include "models/model.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/gguf_writer.hpp"
#include "tests/models/support/golden_folder.hpp"
#include "tests/models/support/safetensors_writer.hpp"
#include "tests/models/support/temp_file.hpp"
#include "tests/models/support/temp_folder.hpp"
#include "tests/paths.hpp"

using namespace twill::models;
namespace test = twill::test;

namespace {

struct named_buffer {
  const char* name;
  std::vector<std::int64_t> shape;
};

/// Buffers that vLLM and transformers name among the tensors which they skip: rotary position
/// buffers of checkpoints of ColossalAI, older transformers, ChatGLM, GPT-NeoX and Qwen; the causal
/// masks of GPT-2, GPT-J, GPT-NeoX and CodeGen; and those of Baichuan.
const named_buffer buffers[] = {
    {"rotary_emb.cos_cached", {1, 1, 64, 32}},
    {"rotary_emb.sin_cached", {64, 32}},
    {"model.rotary_emb.inv_freq", {16}},
    {"model.rotary_emb.original_inv_freq", {16}},
    {"model.layers.0.self_attn.rotary_emb.inv_freq", {16}},
    {"model.layers.1.self_attn.rotary_emb.cos_cached", {1, 1, 64, 32}},
    {"model.layers.1.self_attn.rotary_emb.sin_cached", {1, 1, 64, 32}},
    {"model.layers.1.self_attn.rotary_emb.cos_sin_cache", {64, 32}},
    {"model.layers.99.self_attn.rotary_emb.inv_freq", {16}},
    {"transformer.rotary_emb.inv_freq", {16}},
    {"transformer.rotary_pos_emb.inv_freq", {16}},
    {"transformer.h.0.attn.rotary_emb.inv_freq", {16}},
    {"transformer.h.0.attn.bias", {1, 1, 64, 64}},
    {"transformer.h.0.attn.masked_bias", {}},
    {"h.1.attn.bias", {1, 1, 64, 64}},
    {"h.1.attn.masked_bias", {1}},
    {"transformer.h.1.attn.causal_mask", {1, 1, 64, 64}},
    {"gpt_neox.layers.0.attention.bias", {1, 1, 64, 64}},
    {"gpt_neox.layers.0.attention.masked_bias", {}},
    {"gpt_neox.layers.0.attention.rotary_emb.inv_freq", {16}},
    {"embeddings.position_ids", {1, 64}},
    {"model.future_mask", {64, 64}},
    {"model.alibi_mask", {4, 64, 64}},
};

std::int64_t count_of(const named_buffer& b) {
  std::int64_t n = 1;
  for (const std::int64_t extent : b.shape)
    n *= extent;
  return n;
}

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Writes the buffers into a shard of their own, and an index of the whole folder. The index names
/// the shard of the buffers and the files of the weights, and lists one more buffer, which no file
/// has.
void add_buffers(const test::temp_folder& at) {
  test::safetensors_writer w;
  std::string entries;
  bool flag = false;
  for (const named_buffer& b : buffers) {
    const auto n = static_cast<std::size_t>(count_of(b));
    flag = !flag;
    w.add(b.name, flag ? "F32" : "BOOL", b.shape, std::string(flag ? 4 * n : n, '\1'));
    entries += "\"" + std::string(b.name) + R"(": "buffers.safetensors", )";
  }
  at.write("buffers.safetensors", w.build());
  std::string index = "model.safetensors.index.json", weights = "model.safetensors";
  if (std::ifstream(at.file("pytorch_model.bin"))) {
    index = "pytorch_model.bin.index.json";
    weights = "pytorch_model.bin";
  }
  std::string text = text_of(at.file(index));
  const std::string shard = text.empty() ? weights : "model-00001-of-00002.safetensors";
  entries += R"("model.layers.5.self_attn.rotary_emb.inv_freq": ")" + shard + R"(", )";
  if (text.empty()) text = R"({"weight_map": {"not.there": ")" + weights + "\"}}";
  const std::string map = "\"weight_map\":";
  text.insert(text.find('{', text.find(map)) + 1, entries);
  at.write(index, text);
}

struct opened_folder {
  std::shared_ptr<const folder> files;
  model_spec spec;

  explicit opened_folder(const std::string& path) {
    auto opened = folder::open(path);
    if (!opened.ok()) FAIL(opened.detail());
    files = opened.value();
    auto read = families::spec_of(files->config(), *files->weights());
    if (!read.ok()) FAIL(read.detail());
    spec = std::move(read).value();
  }
};

} // namespace

TEST_CASE("buffers beside the weights are left out, in every family's folder") {
  for (const std::string& name : test::golden_folders()) {
    CAPTURE(name);
    const opened_folder plain(test::golden_dir() + "/" + name);
    const test::temp_folder at(test::golden_dir() + "/" + name);
    add_buffers(at);
    const opened_folder with(at.path());
    for (const failure& f : check_weights(with.spec, *with.files->weights()))
      FAIL_CHECK(f.detail);
    CHECK(with.files->weights()->tensors().size() == plain.files->weights()->tensors().size());
    const auto need = estimate_packed_weights(plain.spec, *plain.files->weights());
    CHECK(estimate_packed_weights(with.spec, *with.files->weights()).all() == need.all());
    CHECK(main_kind(*with.files->weights()) == main_kind(*plain.files->weights()));
  }
}

TEST_CASE("random weights in memory have no buffers either") {
  for (const char* preset : {"chatglm3-6b?layers=1", "llama2-7b?layers=1", "qwen-7b?layers=1",
                             "baichuan2-7b?layers=32&hidden=64&heads=2&mlp=64&vocab=896"}) {
    CAPTURE(preset);
    const auto opened = open_model("dummy:" + std::string(preset));
    INFO((opened.ok() ? "" : opened.detail()));
    REQUIRE(opened.ok());
    for (const failure& f : check_weights(opened.value()->spec, *opened.value()->weights))
      FAIL_CHECK(f.detail);
  }
}

TEST_CASE("a GGUF file's buffers are left out") {
  test::gguf_writer w;
  w.add_string("general.architecture", "llama");
  w.add_tensor("blk.0.attn_rot_embd.weight", {16}, 0, std::string(64, '\0'));
  w.add_tensor("blk.0.attn_norm.weight", {16}, 0, std::string(64, '\0'));
  for (const named_buffer& b : buffers)
    if (!b.shape.empty())
      w.add_tensor(b.name, {b.shape.begin(), b.shape.end()}, 0,
                   std::string(static_cast<std::size_t>(4 * count_of(b)), '\0'));
  const test::temp_file bytes(w.build());
  const auto file = gguf::file::open(bytes.path());
  REQUIRE(file.ok());
  REQUIRE(file.value()->tensors().size() == 1);
  CHECK(file.value()->tensors()[0].name == "blk.0.attn_norm.weight");
  CHECK(file.value()->find("blk.0.attn_rot_embd.weight") == nullptr);
  CHECK(file.value()->vector("blk.0.attn_norm.weight").ok());
}

TEST_CASE("no weight of any family counts as a buffer") {
  for (const std::string& name : test::golden_folders())
    for (const tensor_info& t :
         folder::open(test::golden_dir() + "/" + name).value()->weights()->tensors()) {
      CAPTURE(t.name);
      CHECK_FALSE(is_derived(t));
    }
  for (const char* weight :
       {"model.layers.0.self_attn.bias", "transformer.h.0.attn.c_attn.bias", "rope_freqs.weight",
        "model.layers.0.self_attn.q_proj.bias", "transformer.h.0.attn.bias", "bias", "weight", "",
        "model.embed_tokens.weight", "model.inv_freq_proj.weight", "masked_bias_proj.weight"}) {
    CAPTURE(weight);
    CHECK_FALSE(is_derived({weight, {64}, "F32", 256}));
  }
}

TEST_CASE("a head that an index names and no shard has is missing, not tied") {
  const test::temp_folder at(test::golden_dir() + "/mistral-tiny-bf16");
  std::string index = text_of(at.file("model.safetensors.index.json"));
  // Renames the head in its shard, so that only the index has the head's name.
  std::string shard = text_of(at.file("model-00002-of-00002.safetensors"));
  const auto found = shard.find("lm_head.weight");
  REQUIRE(found != shard.npos);
  shard.replace(found, 14, "lm_head.w_copy");
  at.write("model-00002-of-00002.safetensors", shard);
  const opened_folder opened(at.path());
  CHECK_FALSE(opened.spec.tied_head);
  const auto wrong = check_weights(opened.spec, *opened.files->weights());
  REQUIRE(wrong.size() == 2);
  CHECK(wrong[1].detail == "tensor `lm_head.weight` is not in the file");

  std::string config = text_of(at.file("config.json"));
  const auto flag = config.find("\"tie_word_embeddings\": false");
  REQUIRE(flag != config.npos);
  config.replace(flag, 28, "\"tie_word_embeddings\": true ");
  at.write("config.json", config);
  CHECK(opened_folder(at.path()).spec.tied_head);
}
