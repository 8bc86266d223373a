// A golden model folder: opened as users would, with its reference logits and tokens.
#pragma once

#include <cmath>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "models/checkpoint/folder.hpp"
#include "models/families/registry.hpp"
#include "tests/models/support/decoder_runner.hpp"
#include "tests/models/support/safetensors.hpp"
#include "tests/paths.hpp"
#include "tests/support/json.hpp"
#include "tests/support/worse.hpp"

namespace twill::test {

inline const std::vector<std::string>& golden_folders() {
  static const std::vector<std::string> names = {
      "baichuan2-13b-tiny-bf16", "baichuan2-13b-tiny-gptq", "baichuan2-13b-tiny-gptq-actorder",
      "baichuan2-7b-tiny-fp16",  "chatglm3-tiny-fp16",      "llama-tiny-fp16",
      "llama-tiny-gptq",         "llama3-style-tied-bf16",  "mistral-swa-tiny-bf16",
      "mistral-tiny-awq",        "mistral-tiny-bf16",       "opt-350m-style-fp16",
      "opt-tiny-fp32",           "qwen-v1-ntk-logn-bf16",   "qwen-v1-tiny-bf16",
      "qwen-v1-tiny-fp32"};
  return names;
}

/// Golden folders that tools/golden/hf_variants.py wrote with transformers.
inline const std::vector<std::string>& golden_variants() {
  static const std::vector<std::string> names = {
      "variants/llama-linear",      "variants/llama-dynamic",
      "variants/llama-llama3",      "variants/llama-yarn",
      "variants/llama-yarn-mscale", "variants/llama-yarn-factor",
      "variants/llama-biases",      "variants/llama-wide-heads",
      "variants/llama-one-kv-head", "variants/mistral-window",
      "variants/mistral-no-window", "variants/qwen2-tied",
      "variants/qwen2-windows",     "variants/qwen3",
      "variants/qwen3-biases",      "variants/opt-post-norm",
      "variants/opt-gelu-no-bias",  "variants/opt-no-final-norm"};
  return names;
}

struct golden_prompt {
  id_list ids, greedy;
  std::vector<std::vector<std::pair<std::int32_t, float>>> top; // (n_ids, 5)
  std::vector<float> last_logits, final_logits;                 // (vocab_size)
};

struct golden_folder {
  explicit golden_folder(const std::string& name) {
    const std::string path = test::golden_dir() + "/" + name;
    auto opened = models::folder::open(path);
    if (!opened.ok()) throw std::runtime_error(opened.detail());
    weights = opened.value()->weights();
    auto read = models::families::spec_of(opened.value()->config(), *weights);
    if (!read.ok()) throw std::runtime_error(read.detail());
    spec = std::move(read).value();
    golden = read_json_file(path + "/golden.json");
    const auto tensors = read_f32_tensors(path + "/golden.safetensors");
    for (const value& p : list_of(*golden.find("prompts")))
      prompts.push_back(read_prompt(p, tensors));
  }

  double tolerance(const char* key) const {
    return number_of(*golden.find("tolerance")->find(key));
  }

  std::shared_ptr<const models::checkpoint> weights;
  models::model_spec spec;
  std::vector<golden_prompt> prompts;
  value golden;

private:
  static id_list ids_of(const value& list) {
    id_list out;
    for (const value& v : list_of(list))
      out.push_back(static_cast<std::int32_t>(*v.as_int()));
    return out;
  }

  golden_prompt read_prompt(const value& json,
                            const std::map<std::string, std::vector<float>>& tensors) const {
    golden_prompt p;
    p.ids = ids_of(*json.find("ids"));
    p.greedy = ids_of(*json.find("greedy_ids"));
    const auto& top_ids = list_of(*json.find("top5_ids"));
    const auto& top_logits = list_of(*json.find("top5_logits"));
    for (std::size_t t = 0; t < top_ids.size(); ++t) {
      p.top.emplace_back();
      const id_list ids = ids_of(top_ids[t]);
      for (std::size_t k = 0; k < ids.size(); ++k)
        p.top.back().emplace_back(ids[k], static_cast<float>(number_of(list_of(top_logits[t])[k])));
    }
    const std::string key = "p" + std::to_string(prompts.size()) + ".";
    p.last_logits = tensors.at(key + "prompt_last_logits");
    p.final_logits = tensors.at(key + "final_logits");
    return p;
  }
};

/// The largest difference of two entries with one index. NaN if one difference is NaN, infinity if
/// the lengths differ, so that no bound holds then.
inline double largest_difference(const logit_row& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(double{a[i]} - double{b[i]});
    largest = worse(largest, d);
  }
  return largest;
}

inline models::decoder_options golden_options(gpu::compute_type compute = gpu::compute_type::f32,
                                              gpu::dtype kv = gpu::dtype::f32) {
  models::decoder_options o;
  o.compute = compute;
  o.kv_type = kv;
  o.n_blocks = 128;
  o.max_step_tokens = 512;
  o.max_sequences = 16;
  o.max_logit_rows = 512;
  return o;
}

} // namespace twill::test
