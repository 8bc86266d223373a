#include "models/families/registry.hpp"

#include "models/families/baichuan.hpp"
#include "models/families/chatglm.hpp"
#include "models/families/config_reader.hpp"
#include "models/families/gguf_baichuan.hpp"
#include "models/families/gguf_chatglm.hpp"
#include "models/families/gguf_llama.hpp"
#include "models/families/gguf_qwen.hpp"
#include "models/families/llama.hpp"
#include "models/families/opt.hpp"
#include "models/families/qwen.hpp"

namespace twill::models::families {
namespace {

struct entry {
  const char* model_type;
  const char* architecture;
  const char* family;
  result<model_spec> (*spec)(const value& config, const checkpoint& weights);
};

constexpr entry entries[] = {
    {"llama", "LlamaForCausalLM", "llama", llama_spec},
    {"mistral", "MistralForCausalLM", "mistral", mistral_spec},
    {"opt", "OPTForCausalLM", "opt", opt_spec},
    {"qwen", "QWenLMHeadModel", "qwen", qwen_spec},
    {"qwen2", "Qwen2ForCausalLM", "qwen2", qwen2_spec},
    {"qwen3", "Qwen3ForCausalLM", "qwen3", qwen3_spec},
    {"chatglm", "ChatGLMModel", "chatglm", chatglm_spec},
    {"baichuan", "BaichuanForCausalLM", "baichuan", baichuan_spec},
    {"baichuan", "BaiChuanForCausalLM", "baichuan", baichuan_spec},
};

struct gguf_entry {
  const char* architecture;
  result<model_spec> (*spec)(const gguf::metadata& meta, const checkpoint& weights);
};

constexpr gguf_entry gguf_entries[] = {
    {"llama", gguf_llama_spec}, {"qwen", gguf_qwen_spec},       {"qwen2", gguf_llama_spec},
    {"qwen3", gguf_llama_spec}, {"chatglm", gguf_chatglm_spec}, {"baichuan", gguf_baichuan_spec},
};

std::string architecture_of(const value& config) {
  const value* list = config.find("architectures");
  if (list == nullptr || list->as_list() == nullptr || list->as_list()->empty()) return {};
  const std::string* name = list->as_list()->front().as_string();
  return name == nullptr ? std::string() : *name;
}

/// The architecture decides, since model_type is what folders copy from one another; without it
/// the type does.
result<const entry*> find_entry(const value& config) {
  const std::string architecture = architecture_of(config);
  const value* type = config.find("model_type");
  for (const entry& e : entries)
    if (architecture == e.architecture) return &e;
  for (const entry& e : entries)
    if (architecture.empty() && type != nullptr && *type == value(e.model_type)) return &e;
  std::string known;
  for (const entry& e : entries)
    known += (known.empty() ? "" : ", ") + std::string(e.architecture);
  return failure{errc::unsupported,
                 "config.json: `architectures` must name one of " + known + "; got " +
                     (architecture.empty()
                          ? "none, and `model_type` " + (type == nullptr ? "null" : describe(*type))
                          : "\"" + architecture.substr(0, 100) + "\"")};
}

} // namespace

result<std::string> family_of(const value& config) {
  auto found = find_entry(config);
  if (!found.ok()) return found.error();
  return std::string(found.value()->family);
}

result<model_spec> spec_of(const value& config, const checkpoint& weights) {
  auto found = find_entry(config);
  if (!found.ok()) return found.error();
  return found.value()->spec(config, weights);
}

result<model_spec> gguf_spec_of(const gguf::metadata& meta, const checkpoint& weights) {
  auto architecture = meta.get_string("general.architecture");
  if (!architecture.ok()) return architecture.error();
  std::string known;
  for (const gguf_entry& e : gguf_entries) {
    if (architecture.value() == e.architecture) return e.spec(meta, weights);
    known += (known.empty() ? "" : ", ") + std::string(e.architecture);
  }
  return failure{errc::unsupported, "`general.architecture` must be one of " + known + "; got \"" +
                                        architecture.value().substr(0, 100) + "\""};
}

} // namespace twill::models::families
