#include "tests/actors/meaning/small_models.hpp"

#include <cstdint>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "models/checkpoint/gguf/file.hpp"
#include "models/families/registry.hpp"
#include "models/synth/recipe.hpp"
#include "tests/actors/meaning/piece_tokenizer.hpp"
#include "tests/models/support/small_recipes.hpp"
#include "tests/models/support/temp_file.hpp"
#include "tests/models/support/temp_folder.hpp"
#include "tests/models/support/tiny_llama.hpp"
#include "tests/paths.hpp"
#include "tools/twill-synth/write.hpp"

namespace twill::test {
namespace {

struct computed_in {
  const char* compute;
  const char* kv;
};

/// The source of a model. Exactly one of the first three members is set.
struct origin {
  std::string recipe; ///< with `gguf`, written as a file of that kind
  std::string golden; ///< a folder
  std::string mixed;  ///< GGUF kinds of q, k, v, gate, up and the rest, as letters
  std::string gguf = {};
  computed_in how = {"f32", "f32"};
};

template <class T>
auto value_or_throw(T result, const std::string& what) {
  if (!result.ok()) throw std::runtime_error(what + ": " + result.detail());
  return std::move(result).value();
}

std::uint32_t kind_of(char letter) {
  switch (letter) {
  case 'f':
    return 0; // F32
  case 'h':
    return 1; // F16
  case 'b':
    return 30; // BF16
  case '0':
    return 2; // Q4_0
  case '1':
    return 3; // Q4_1
  default:
    return 8; // Q8_0
  }
}

/// A Llama with biases whose weight matrices are of different kinds, so that the matrices of one
/// projection (such as query, key and value) are packed separately.
std::shared_ptr<const models::model> mixed_llama(const std::string& kinds) {
  tiny_llama m;
  m.vocab = 640;
  m.hidden = 64;
  m.mlp = 96;
  m.q_kind = kind_of(kinds[0]);
  m.k_kind = kind_of(kinds[1]);
  m.v_kind = kind_of(kinds[2]);
  m.gate_kind = kind_of(kinds[3]);
  m.up_kind = kind_of(kinds[4]);
  m.other_kind = kind_of(kinds[5]);
  m.tied = false;
  m.biases = true;
  m.final_norm = 4;
  const temp_file bytes(make_tiny_llama(m).build());
  auto file = value_or_throw(models::gguf::file::open(bytes.path()), kinds);
  auto model = std::make_shared<models::model>();
  model->spec = value_or_throw(models::families::gguf_spec_of(file->meta(), *file), kinds);
  model->name = "mixed";
  model->weights = file;
  model->text = std::make_shared<piece_tokenizer>(static_cast<std::int32_t>(m.vocab));
  return model;
}

std::shared_ptr<const models::model> made_from(const origin& from) {
  if (!from.mixed.empty()) return mixed_llama(from.mixed);
  if (!from.golden.empty())
    return value_or_throw(models::open_model(golden_dir() + "/" + from.golden), from.golden);
  if (from.gguf.empty())
    return value_or_throw(models::open_model("dummy:" + from.recipe), from.recipe);
  const temp_folder at;
  synth::write_options options;
  options.format = synth::file_format::gguf;
  options.gguf_kind = from.gguf;
  const auto recipe = value_or_throw(synth::parse_recipe(from.recipe), from.recipe);
  value_or_throw(synth::write_checkpoint(recipe, at.file("model.gguf"), options), from.recipe);
  return value_or_throw(models::open_model(at.file("model.gguf")), from.recipe);
}

std::vector<origin> all_origins() {
  const std::string llama = "llama3-8b?layers=2&hidden=128&heads=4&kv-heads=2&mlp=192&vocab=1005";
  const std::string smollm = "smollm2-135m?layers=2&hidden=96&heads=3&kv-heads=1&mlp=192&vocab=800";
  std::vector<origin> all = {
      {"", "", "01081f", "", {"int8", "bf16"}},
      {llama, "", "", "", {"f32", "f32"}},
      {small_recipes[2], "", "", "", {"bf16", "bf16"}},
      {small_recipes[10], "", "", "", {"int8", "f16"}},
      {smollm, "", "", "Q4_0", {"int8", "int8"}},
      {small_recipes[1], "", "", "", {"f32", "f16"}},
      {"", "qwen-v1-ntk-logn-bf16", "", "", {"f32", "f32"}},
      {"", "", "fhbfhb", "", {"f32", "f32"}},
  };
  for (const computed_in how : {computed_in{"f32", "f32"}, computed_in{"bf16", "bf16"},
                                computed_in{"int8", "int8"}, computed_in{"w8a8", "f16"}}) {
    for (const std::string& recipe : small_recipes)
      all.push_back({recipe, "", "", "", how});
    for (const char* kind : {"F32", "F16", "BF16", "Q4_0", "Q4_1", "Q8_0"})
      all.push_back({smollm, "", "", kind, how});
    for (const char* kinds : {"111888", "011100", "8f11f0", "hhhbbb", "081f0f"})
      all.push_back({"", "", kinds, "", how});
    for (const char* folder : {"llama-tiny-gptq", "mistral-tiny-awq", "mistral-swa-tiny-bf16"})
      all.push_back({"", folder, "", "", how});
  }
  return all;
}

const std::vector<origin>& origins() {
  static const auto all = all_origins();
  return all;
}

} // namespace

std::size_t n_small_models() {
  return origins().size();
}

const small_model& small_model_at(std::size_t number) {
  static std::map<std::size_t, small_model> made;
  const auto known = made.find(number);
  if (known != made.end()) return known->second;
  const origin& from = origins().at(number);
  small_model m;
  auto files = std::make_shared<models::model>(*made_from(from));
  m.chats = give_templates(*files, number);
  m.files = std::move(files);
  m.name = from.recipe + from.golden + from.mixed + " " + from.gguf + " in " + from.how.compute +
           " with KV in " + from.how.kv;
  m.options.model.compute = from.how.compute;
  m.options.model.path = m.name;
  m.options.model.name = "model-" + std::to_string(number);
  m.options.kv.type = from.how.kv;
  m.options.scheduler.max_context_tokens = context_of(m);
  m.options.limits.default_max_tokens = 24;
  return made.emplace(number, std::move(m)).first->second;
}

} // namespace twill::test
