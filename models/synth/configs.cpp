#include "models/synth/configs.hpp"

#include "models/families/family.hpp"
#include "models/synth/family_recipe.hpp"
#include "models/synth/vocabulary.hpp"

namespace twill::models::synth {
namespace {

using object = value_object;

object gptq_body(const recipe& r) {
  return {{"bits", r.bits},
          {"group_size", r.group},
          {"damp_percent", 0.1},
          {"desc_act", r.act_order},
          {"sym", r.symmetric},
          {"true_sequential", true},
          {"model_name_or_path", nullptr},
          {"model_file_base_name", "model"}};
}

} // namespace

const char* torch_name(storage_type type) {
  return type == storage_type::f32 ? "float32" : type == storage_type::f16 ? "float16" : "bfloat16";
}

value list_of(std::string_view text) {
  return value_list{value(std::string(text))};
}

void append(object& to, object more) {
  for (auto& member : more)
    to.push_back(std::move(member));
}

value make_config(const recipe& r) {
  object c = r.family->recipe->config(r, special_ids(r));
  if (r.packed == packing::gptq) {
    object q = {{"quant_method", "gptq"}};
    append(q, gptq_body(r));
    c.emplace_back("quantization_config", std::move(q));
  } else if (r.packed == packing::awq) {
    c.emplace_back("quantization_config", object{{"quant_method", "awq"},
                                                 {"zero_point", true},
                                                 {"group_size", r.group},
                                                 {"bits", r.bits},
                                                 {"version", "gemm"}});
  }
  return c;
}

std::optional<std::pair<std::string, value>> make_quantization_file(const recipe& r) {
  if (r.packed == packing::gptq) return std::pair("quantize_config.json", value(gptq_body(r)));
  if (r.packed == packing::awq)
    return std::pair("quant_config.json", value(object{{"zero_point", true},
                                                       {"q_group_size", r.group},
                                                       {"w_bit", r.bits},
                                                       {"version", "GEMM"}}));
  return std::nullopt;
}

value make_generation_config(const recipe& r) {
  const vocabulary ids = special_ids(r);
  if (r.family->recipe->generation_config != nullptr)
    return r.family->recipe->generation_config(r, ids);
  object g = {{"_from_model_config", true}, {"bos_token_id", ids.bos}, {"eos_token_id", ids.eos}};
  if (ids.pad >= 0) g.emplace_back("pad_token_id", ids.pad);
  g.emplace_back("transformers_version", "4.36.2");
  return g;
}

} // namespace twill::models::synth
