// Shapes of the published models.
#include "models/synth/recipe.hpp"

namespace twill::models::synth {
namespace {

struct shape {
  std::int32_t hidden, layers, heads, kv_heads, mlp, vocab, context;
};

recipe make(const char* name, const char* family, text_kind text, storage_type dtype,
            const shape& s) {
  recipe r;
  r.preset = name;
  r.family = family;
  r.text = text;
  r.dtype = dtype;
  r.hidden_size = s.hidden;
  r.n_layers = s.layers;
  r.n_heads = s.heads;
  r.n_kv_heads = s.kv_heads;
  r.mlp_size = s.mlp;
  r.vocab_size = s.vocab;
  r.context_length = s.context;
  return r;
}

void add_opt(std::vector<recipe>& all) {
  const auto opt = [&](const char* name, std::int32_t hidden, std::int32_t layers,
                       std::int32_t heads) {
    all.push_back(make(name, "opt", text_kind::gpt2_files, storage_type::f16,
                       {hidden, layers, heads, heads, 4 * hidden, 50272, 2048}));
    all.back().tied_head = true;
  };
  opt("opt-125m", 768, 12, 12);
  opt("opt-350m", 1024, 24, 16);
  all.back().embed_dim = 512;
  all.back().pre_norm = false;
  opt("opt-1.3b", 2048, 24, 32);
  opt("opt-2.7b", 2560, 32, 32);
  opt("opt-6.7b", 4096, 32, 32);
  opt("opt-13b", 5120, 40, 40);
  opt("opt-30b", 7168, 48, 56);
  opt("opt-66b", 9216, 64, 72);
  opt("opt-175b", 12288, 96, 96);
}

void add_mistral(std::vector<recipe>& all) {
  recipe r = make("mistral-7b", "mistral", text_kind::sentence_piece, storage_type::bf16,
                  {4096, 32, 32, 8, 14336, 32000, 32768});
  r.window = 4096;
  all.push_back(r);
  r.preset = "mistral-7b-awq"; // Mistral-7B-OpenOrca-AWQ
  r.vocab_size = 32002;
  r.chatml = true;
  r.dtype = storage_type::f16;
  r.packed = packing::awq;
  all.push_back(r);
}

void add_baichuan(std::vector<recipe>& all) {
  recipe r = make("baichuan2-7b", "baichuan", text_kind::baichuan, storage_type::bf16,
                  {4096, 32, 32, 32, 11008, 125696, 4096});
  r.norm_epsilon = 1e-6;
  all.push_back(r);
  r = make("baichuan2-13b", "baichuan", text_kind::baichuan, storage_type::bf16,
           {5120, 40, 40, 40, 13696, 125696, 4096});
  r.norm_epsilon = 1e-6;
  r.alibi = true;
  all.push_back(r);
  r.preset = "baichuan2-13b-gptq";
  r.dtype = storage_type::f16;
  r.packed = packing::gptq;
  all.push_back(r);
}

void add_chatglm(std::vector<recipe>& all) {
  recipe r = make("chatglm3-6b", "chatglm", text_kind::chatglm, storage_type::f16,
                  {4096, 28, 32, 2, 13696, 65024, 8192});
  all.push_back(r);
  r.preset = "chatglm3-6b-32k";
  r.context_length = 32768;
  r.rope_ratio = 50;
  all.push_back(r);
}

void add_qwen(std::vector<recipe>& all) {
  recipe r = make("qwen-7b", "qwen", text_kind::tiktoken, storage_type::bf16,
                  {4096, 32, 32, 32, 11008, 151936, 8192});
  r.norm_epsilon = 1e-6;
  all.push_back(r);
  r = make("qwen-14b", "qwen", text_kind::tiktoken, storage_type::bf16,
           {5120, 40, 40, 40, 13696, 152064, 2048});
  r.norm_epsilon = 1e-6;
  all.push_back(r);
}

void add_llama(std::vector<recipe>& all) {
  all.push_back(make("llama2-7b", "llama", text_kind::sentence_piece, storage_type::f16,
                     {4096, 32, 32, 32, 11008, 32000, 4096}));
  all.push_back(make("llama2-13b", "llama", text_kind::sentence_piece, storage_type::f16,
                     {5120, 40, 40, 40, 13824, 32000, 4096}));
  recipe r = make("llama3-8b", "llama", text_kind::llama3_json, storage_type::bf16,
                  {4096, 32, 32, 8, 14336, 128256, 8192});
  r.rope_theta = 500000;
  all.push_back(r);
  r = make("smollm2-135m", "llama", text_kind::smollm_json, storage_type::bf16,
           {576, 30, 9, 3, 1536, 49152, 8192});
  r.rope_theta = 100000;
  r.tied_head = true;
  all.push_back(r);
}

void add_qwen2_and_3(std::vector<recipe>& all) {
  const auto add = [&](const char* name, const char* family, const shape& s, bool tied) {
    recipe r = make(name, family, text_kind::qwen_json, storage_type::bf16, s);
    r.norm_epsilon = 1e-6;
    r.rope_theta = 1000000;
    r.tied_head = tied;
    if (r.family == "qwen3") r.head_dim = 128;
    all.push_back(r);
  };
  add("qwen2-0.5b", "qwen2", {896, 24, 14, 2, 4864, 151936, 32768}, true);
  add("qwen2-7b", "qwen2", {3584, 28, 28, 4, 18944, 152064, 32768}, false);
  add("qwen3-0.6b", "qwen3", {1024, 28, 16, 8, 3072, 151936, 40960}, true);
  add("qwen3-8b", "qwen3", {4096, 36, 32, 8, 12288, 151936, 40960}, false);
}

} // namespace

const std::vector<recipe>& presets() {
  static const std::vector<recipe> all = [] {
    std::vector<recipe> list;
    add_opt(list);
    add_mistral(list);
    add_baichuan(list);
    add_chatglm(list);
    add_qwen(list);
    add_llama(list);
    add_qwen2_and_3(list);
    return list;
  }();
  return all;
}

} // namespace twill::models::synth
