#include "models/synth/recipe.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace twill::models::synth {
namespace {

failure bad(std::string_view field, const std::string& rule, std::string_view given) {
  return {errc::bad_metadata, "`" + std::string(field.substr(0, 100)) + "` must be " + rule +
                                  ", got \"" + std::string(given.substr(0, 100)) + "\""};
}

result<nothing> set_int(std::int32_t& target, std::string_view name, std::string_view text,
                        std::int32_t least) {
  std::int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < least)
    return bad(name, "an integer of at least " + std::to_string(least), text);
  target = number;
  return nothing{};
}

result<nothing> set_seed(std::uint64_t& target, std::string_view text) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), target);
  if (error != std::errc{} || end != text.data() + text.size())
    return bad("seed", "an integer of at least 0", text);
  return nothing{};
}

result<nothing> set_number(double& target, std::string_view name, std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(number) ||
      number <= 0)
    return bad(name, "a number above 0", text);
  target = number;
  return nothing{};
}

result<nothing> set_flag(bool& target, std::string_view name, std::string_view text) {
  if (text == "true" || text == "1" || text == "yes")
    target = true;
  else if (text == "false" || text == "0" || text == "no")
    target = false;
  else
    return bad(name, "true or false", text);
  return nothing{};
}

result<nothing> set_dtype(recipe& r, std::string_view text) {
  for (const storage_type t : {storage_type::f32, storage_type::f16, storage_type::bf16})
    if (text == name_of(t)) {
      r.dtype = t;
      return nothing{};
    }
  return bad("dtype", "f32, f16 or bf16", text);
}

result<nothing> set_quantization(recipe& r, std::string_view text) {
  if (text == "none") {
    r.packed = packing::none;
  } else if (text == "gptq-4" || text == "gptq-8" || text == "awq-4") {
    r.packed = text == "awq-4" ? packing::awq : packing::gptq;
    r.bits = text == "gptq-8" ? 8 : 4;
    r.dtype = storage_type::f16;
  } else {
    return bad("quant", "none, gptq-4, gptq-8 or awq-4", text);
  }
  return nothing{};
}

/// Sets the number of heads. If the preset has as many key-value heads as heads, sets both numbers.
result<nothing> set_heads(recipe& r, std::string_view text) {
  const bool grouped = r.n_kv_heads != r.n_heads;
  auto done = set_int(r.n_heads, "heads", text, 1);
  if (done.ok() && !grouped) r.n_kv_heads = r.n_heads;
  return done;
}

struct size_rule {
  const char* name;
  std::int32_t recipe::*field;
  std::int32_t least;
};

constexpr size_rule size_rules[] = {
    {"vocab", &recipe::vocab_size, 512},      {"hidden", &recipe::hidden_size, 1},
    {"layers", &recipe::n_layers, 1},         {"kv-heads", &recipe::n_kv_heads, 1},
    {"head-dim", &recipe::head_dim, 0},       {"mlp", &recipe::mlp_size, 1},
    {"context", &recipe::context_length, 16}, {"window", &recipe::window, 0},
    {"embed", &recipe::embed_dim, 0},         {"group", &recipe::group, -1},
    {"step-us", &recipe::step_us, 0},         {"fault-every", &recipe::fault_every_s, 0},
};

struct flag_rule {
  const char* name;
  bool recipe::*field;
};

constexpr flag_rule flag_rules[] = {
    {"pre-norm", &recipe::pre_norm}, {"alibi", &recipe::alibi},
    {"tied", &recipe::tied_head},    {"bias", &recipe::attention_bias},
    {"chatml", &recipe::chatml},     {"act-order", &recipe::act_order},
    {"sym", &recipe::symmetric},
};

} // namespace

std::int32_t recipe::head_size() const {
  return head_dim > 0 ? head_dim : hidden_size / std::max(n_heads, 1);
}

const char* name_of(storage_type t) {
  switch (t) {
  case storage_type::f32:
    return "f32";
  case storage_type::f16:
    return "f16";
  case storage_type::bf16:
    return "bf16";
  }
  return "";
}

std::string describe_weights(const recipe& r) {
  if (r.packed == packing::none) return name_of(r.dtype);
  std::string text = r.packed == packing::awq ? "AWQ-" : "GPTQ-";
  text += std::to_string(r.bits) + " group " + std::to_string(r.group);
  if (r.packed == packing::gptq && r.act_order) text += " act-order";
  return text;
}

const std::vector<option_help>& options() {
  static const std::vector<option_help> all = {
      {"vocab", "rows of the embedding, at least 512"},
      {"hidden", "hidden size"},
      {"layers", "number of layers"},
      {"heads", "attention heads"},
      {"kv-heads", "key-value heads (groups)"},
      {"head-dim", "head size, 0: hidden / heads"},
      {"mlp", "inner width of the MLP"},
      {"context", "positions the config claims"},
      {"window", "Mistral: sliding window, 0: none"},
      {"embed", "OPT: embedding width, 0: hidden"},
      {"theta", "base of the rotary frequencies (Llama, Mistral, Qwen2, Qwen3)"},
      {"rope-ratio", "ChatGLM: factor on the base of the frequencies"},
      {"pre-norm", "OPT: norms before the sub-layers (true, false)"},
      {"alibi", "Baichuan: ALiBi instead of rotary"},
      {"tied", "the head is the embedding (not for Qwen, ChatGLM, Baichuan)"},
      {"bias", "Llama: biases on the attention's matrices"},
      {"chatml", "SentencePiece families: <|im_end|>, <|im_start|> after the vocabulary"},
      {"dtype", "f32, f16 or bf16"},
      {"quant", "none, gptq-4, gptq-8 or awq-4 (these make dtype f16)"},
      {"group", "columns per scale, -1: all"},
      {"act-order", "GPTQ: columns out of order"},
      {"sym", "GPTQ: zero points in the middle"},
      {"seed", "seed of every random number"},
      {"step-us", "dummy:null: microseconds that a step takes, at most 10 s"},
      {"fault-every", "dummy:null: a step fails after so many seconds, again and again; 0: none"},
  };
  return all;
}

result<nothing> set_option(recipe& r, std::string_view name, std::string_view value) {
  for (const size_rule& rule : size_rules)
    if (name == rule.name) return set_int(r.*rule.field, name, value, rule.least);
  for (const flag_rule& rule : flag_rules)
    if (name == rule.name) return set_flag(r.*rule.field, name, value);
  if (name == "heads") return set_heads(r, value);
  if (name == "theta") return set_number(r.rope_theta, name, value);
  if (name == "rope-ratio") return set_number(r.rope_ratio, name, value);
  if (name == "dtype") return set_dtype(r, value);
  if (name == "quant") return set_quantization(r, value);
  if (name == "seed") return set_seed(r.seed, value);
  std::string known;
  for (const option_help& o : options())
    known += (known.empty() ? "" : ", ") + std::string(o.name);
  return bad("option", "one of " + known, name);
}

result<recipe> parse_recipe(std::string_view text) {
  const std::size_t mark = text.find('?');
  const std::string_view name = text.substr(0, mark);
  const auto found = std::find_if(presets().begin(), presets().end(),
                                  [&](const recipe& r) { return r.preset == name; });
  if (found == presets().end()) {
    std::string known;
    for (const recipe& r : presets())
      known += (known.empty() ? "" : ", ") + r.preset;
    return bad("preset", "one of " + known, name);
  }
  recipe r = *found;
  std::string_view rest = mark == std::string_view::npos ? "" : text.substr(mark + 1);
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) return bad("option", "name=value", item);
    auto set = set_option(r, item.substr(0, equals), item.substr(equals + 1));
    if (!set.ok()) return set.error();
  }
  if (auto valid = validate(r); !valid.ok()) return valid.error();
  return r;
}

} // namespace twill::models::synth
