// Recipes of small random models, at least one for every family and every packing.
#pragma once

#include <string>
#include <vector>

#include "models/synth/recipe.hpp"
#include "tests/catch.hpp"

namespace twill::test {

inline const std::vector<std::string> small_recipes = {
    "opt-125m?layers=2&hidden=96&heads=3&mlp=160&vocab=704&context=64&dtype=f32",
    "opt-350m?layers=2&hidden=96&heads=3&mlp=160&vocab=704&context=64&embed=48",
    "mistral-7b?layers=2&hidden=128&heads=4&kv-heads=2&mlp=192&vocab=720&window=24",
    "mistral-7b-awq?layers=2&hidden=128&heads=4&kv-heads=2&mlp=256&vocab=736&group=64",
    "llama2-7b?layers=2&hidden=128&heads=4&mlp=192&vocab=720&bias=true",
    "llama3-8b?layers=2&hidden=128&heads=4&kv-heads=2&mlp=192&vocab=1005",
    "smollm2-135m?layers=2&hidden=96&heads=3&kv-heads=1&mlp=192&vocab=800",
    "llama2-7b?layers=2&hidden=128&heads=4&mlp=256&vocab=720&quant=gptq-4&group=32",
    "baichuan2-7b?layers=2&hidden=128&heads=4&mlp=192&vocab=864",
    "baichuan2-13b?layers=2&hidden=96&heads=3&mlp=256&vocab=864&dtype=f32",
    "baichuan2-13b-gptq?layers=2&hidden=128&heads=4&mlp=256&vocab=864&group=32&act-order=true&sym="
    "false",
    "baichuan2-13b-gptq?layers=2&hidden=128&heads=4&mlp=256&vocab=864&quant=gptq-8&group=-1",
    "chatglm3-6b-32k?layers=2&hidden=128&heads=4&kv-heads=2&mlp=192&vocab=768",
    "qwen-14b?layers=2&hidden=128&heads=4&mlp=192&vocab=768",
    "qwen-7b?layers=2&hidden=128&heads=4&mlp=256&vocab=768&quant=gptq-4&group=64",
    "qwen2-0.5b?layers=2&hidden=112&heads=7&kv-heads=1&mlp=192&vocab=600",
    "qwen3-0.6b?layers=2&hidden=128&heads=4&kv-heads=2&head-dim=48&mlp=192&vocab=600",
};

inline models::synth::recipe parsed_recipe(const std::string& text) {
  auto r = models::synth::parse_recipe(text);
  INFO(text << ": " << (r.ok() ? "" : r.detail()));
  REQUIRE(r.ok());
  return r.value();
}

} // namespace twill::test
