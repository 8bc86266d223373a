// RoPE scaling of GGUF files, compared with the values that llama.cpp computed for the same weights
// and metadata keys (tools/golden/gguf_rope.py).
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/checkpoint/gguf/file.hpp"
#include "models/families/registry.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/gguf_writer.hpp"
#include "tests/models/support/golden_folder.hpp"
#include "tests/models/support/temp_file.hpp"
#include "tests/models/support/temp_folder.hpp"
#include "tests/paths.hpp"
#include "tools/twill-synth/write.hpp"

using namespace twill::models;
using namespace twill::test;
using twill::value;

namespace {

constexpr std::uint64_t layers = 2, hidden = 32, heads = 2, kv_heads = 1, head = 16, mlp = 64,
                        context = 64, vocab = 320;

/// Writes tensors in order, with the weights that tools/golden/gguf_rope.py computes for them.
class formula_writer {
public:
  explicit formula_writer(gguf_writer& to) : to_(to) {}

  void add(const std::string& name, const std::vector<std::uint64_t>& shape) {
    std::uint64_t n = 1;
    for (const std::uint64_t extent : shape)
      n *= extent;
    const float base = name.find("norm") != std::string::npos ? 1 : 0;
    std::vector<float> values;
    for (std::uint64_t i = 0; i < n; ++i) {
      auto x = static_cast<std::uint32_t>(i * 2654435761U + number_ * 40503U + 12345U);
      x ^= x >> 16;
      x *= 2246822519U;
      x ^= x >> 13;
      values.push_back(base + static_cast<float>((x / 4294967296.0 - 0.5) * 0.6));
    }
    ++number_;
    std::string bytes;
    for (const float f : values)
      bytes += raw(f);
    to_.add_tensor(name, shape, 0, bytes);
  }

private:
  gguf_writer& to_;
  std::uint32_t number_ = 0;
};

void add_tensors(gguf_writer& w, const std::string& arch) {
  formula_writer all(w);
  all.add("token_embd.weight", {vocab, hidden});
  all.add("output_norm.weight", {hidden});
  all.add("output.weight", {vocab, hidden});
  for (std::uint64_t layer = 0; layer < layers; ++layer) {
    const std::string at = "blk." + std::to_string(layer) + ".";
    all.add(at + "attn_norm.weight", {hidden});
    all.add(at + "attn_q.weight", {heads * head, hidden});
    all.add(at + "attn_k.weight", {kv_heads * head, hidden});
    all.add(at + "attn_v.weight", {kv_heads * head, hidden});
    all.add(at + "attn_output.weight", {hidden, heads * head});
    all.add(at + "ffn_norm.weight", {hidden});
    all.add(at + "ffn_gate.weight", {mlp, hidden});
    all.add(at + "ffn_up.weight", {mlp, hidden});
    all.add(at + "ffn_down.weight", {hidden, mlp});
    if (arch == "qwen2")
      for (const auto& [part, rows] :
           {std::pair<const char*, std::uint64_t>{"q", heads}, {"k", kv_heads}, {"v", kv_heads}})
        all.add(at + "attn_" + part + ".bias", {rows * head});
    if (arch == "qwen3")
      for (const char* part : {"attn_q_norm.weight", "attn_k_norm.weight"})
        all.add(at + part, {head});
  }
}

void add_keys(gguf_writer& w, const std::string& arch, const twill::value_object& keys) {
  for (const auto& [name, given] : keys) {
    const bool outside = name == "freq_base" || name == "scale_linear";
    const std::string key = arch + (outside ? ".rope." : ".rope.scaling.") + name;
    if (name == "frequency_factors") {
      std::string bytes;
      for (std::uint64_t i = 1; i <= head / 2; ++i)
        bytes += raw(static_cast<float>(i));
      w.add_tensor("rope_freqs.weight", {head / 2}, 0, bytes);
    } else if (given.as_string() != nullptr) {
      w.add_string(key, *given.as_string());
    } else if (given.as_int() != nullptr) {
      w.add_u32(key, static_cast<std::uint32_t>(*given.as_int()));
    } else {
      w.add_f32(key, static_cast<float>(*given.as_double()));
    }
  }
}

std::shared_ptr<const gguf::file> model_of(const std::string& arch,
                                           const twill::value_object& keys) {
  gguf_writer w;
  w.add_string("general.architecture", arch);
  for (const auto& [name, number] :
       {std::pair<const char*, std::uint64_t>{"context_length", context},
        {"embedding_length", hidden},
        {"block_count", layers},
        {"feed_forward_length", mlp},
        {"attention.head_count", heads},
        {"attention.head_count_kv", kv_heads}})
    w.add_u32(arch + "." + name, static_cast<std::uint32_t>(number));
  w.add_f32(arch + ".attention.layer_norm_rms_epsilon", 1e-5f);
  add_tensors(w, arch);
  add_keys(w, arch, keys);
  const temp_file bytes(w.build());
  auto opened = gguf::file::open(bytes.path());
  INFO((opened.ok() ? "" : opened.detail()));
  REQUIRE(opened.ok());
  return opened.value();
}

model_spec spec_of(const gguf::file& file) {
  auto spec = families::gguf_spec_of(file.meta(), file);
  INFO((spec.ok() ? "" : spec.detail()));
  REQUIRE(spec.ok());
  return spec.value();
}

double log_of_sum(const logit_row& row) {
  double sum = 0;
  for (const float x : row)
    sum += std::exp(double{x});
  return std::log(sum);
}

} // namespace

TEST_CASE("rotary scaling of GGUF files computes what llama.cpp computes", "[golden]") {
  const value golden = read_json_file(golden_dir() + "/gguf_rope.json");
  id_list prompt;
  for (const value& id : list_of(at(golden, "prompt")))
    prompt.push_back(static_cast<std::int32_t>(*id.as_int()));
  CHECK(list_of(at(golden, "cases")).size() == 25);
  for (const value& c : list_of(at(golden, "cases"))) {
    const std::string& arch = text_of(at(c, "arch"));
    const twill::value_object& keys = *at(c, "keys").as_object();
    std::string shown = arch;
    for (const auto& [name, given] : keys)
      shown += " " + name + "=" +
               (given.as_string() != nullptr ? *given.as_string()
                : given.as_bool() != nullptr ? "true"
                                             : std::to_string(number_of(given)));
    CAPTURE(shown);
    const auto file = model_of(arch, keys);
    decoder_runner runner(spec_of(*file), *file, golden_options());
    const logit_row row = runner.step({{0, prompt}}).front();
    const double all = log_of_sum(row);
    const auto& wanted = list_of(at(c, "logprobs"));
    for (std::size_t i = 0; i < wanted.size(); ++i)
      CHECK(double{row[i]} - all == Approx(number_of(wanted[i])).margin(2e-3));
  }
}

TEST_CASE("every family's GGUF file may have YaRN, which lengthens its context") {
  const auto with = [](const gguf::file& file, const std::string& arch, const std::string& type) {
    gguf::metadata meta = file.meta();
    meta.entries[arch + ".rope.scaling.type"] = type;
    meta.entries[arch + ".rope.scaling.factor"] = 4.0;
    meta.entries[arch + ".rope.scaling.original_context_length"] = std::int64_t{32};
    return families::gguf_spec_of(meta, file);
  };
  for (const auto& [arch, recipe] :
       {std::pair<std::string, std::string>{"llama", "llama2-7b?hidden=64&layers=1&heads=2&mlp=64"},
        {"qwen2", "qwen2-7b?hidden=64&layers=1&heads=2&kv-heads=2&mlp=64"},
        {"qwen3", "qwen3-8b?hidden=64&layers=1&heads=2&kv-heads=2&mlp=64"},
        {"qwen", "qwen-7b?hidden=64&layers=1&heads=2&mlp=64"},
        {"chatglm", "chatglm3-6b?hidden=64&layers=1&heads=2&kv-heads=2&mlp=64"},
        {"baichuan", "baichuan2-7b?hidden=64&layers=32&heads=2&mlp=64"}}) {
    CAPTURE(arch);
    const temp_folder folder;
    auto r = twill::synth::parse_recipe(recipe + "&vocab=896&context=64");
    INFO((r.ok() ? "" : r.detail()));
    REQUIRE(r.ok());
    twill::synth::write_options options;
    options.format = twill::synth::file_format::gguf;
    const auto written =
        twill::synth::write_checkpoint(r.value(), folder.file("model.gguf"), options);
    INFO((written.ok() ? "" : written.detail()));
    REQUIRE(written.ok());
    const auto file = gguf::file::open(folder.file("model.gguf")).value();
    const model_spec plain = spec_of(*file);
    CHECK(plain.rope.magnitude == 1);
    const auto scaled = with(*file, arch, "yarn");
    INFO((scaled.ok() ? "" : scaled.detail()));
    REQUIRE(scaled.ok());
    const rope_rule& rope = scaled.value().rope;
    CHECK(rope.magnitude == Approx(1 + 0.1 * std::log(4.0)));
    REQUIRE(rope.inv_freq.size() == plain.rope.inv_freq.size());
    CHECK(rope.inv_freq.front() == plain.rope.inv_freq.front());
    CHECK(rope.inv_freq.back() == Approx(plain.rope.inv_freq.back() / 4));
    CHECK(scaled.value().context_length == 128);
    const auto other = with(*file, arch, "longrope");
    REQUIRE_FALSE(other.ok());
    CHECK(other.code() == errc::unsupported);
    CHECK(other.detail() ==
          "`" + arch + ".rope.scaling.type` must be none, linear or yarn, got \"longrope\"");
  }
}
