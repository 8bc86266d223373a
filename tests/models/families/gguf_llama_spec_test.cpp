#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "config/load.hpp"
#include "gpu/attention/kv_element.hpp"
#include "models/checkpoint/gguf/file.hpp"
#include "models/compute.hpp"
#include "models/families/registry.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/temp_file.hpp"
#include "tests/models/support/tiny_llama.hpp"

using namespace twill::models;
namespace config = twill::config;
namespace gpu = twill::gpu;
namespace test = twill::test;

namespace {

std::shared_ptr<const gguf::file> open_file(const test::gguf_writer& w) {
  const test::temp_file bytes(w.build());
  auto opened = gguf::file::open(bytes.path());
  if (!opened.ok()) throw std::runtime_error(opened.detail());
  return opened.value();
}

/// The metadata of a good file with one change.
twill::result<model_spec, errc> changed(const std::function<void(gguf::metadata&)>& change) {
  const auto file = open_file(test::make_tiny_llama({}));
  gguf::metadata meta = file->meta();
  change(meta);
  return families::gguf_spec_of(meta, *file);
}

void check_refused(errc code, const std::string& words,
                   const std::function<void(gguf::metadata&)>& change) {
  const auto spec = changed(change);
  REQUIRE_FALSE(spec.ok());
  CAPTURE(spec.detail());
  CHECK(spec.code() == code);
  CHECK(spec.detail().find(words) != std::string::npos);
}

} // namespace

TEST_CASE("a Llama GGUF's metadata becomes a spec") {
  const auto spec = changed([](gguf::metadata&) {}).value();
  CHECK(spec.family == "llama");
  CHECK(spec.vocab_size == 50);
  CHECK(spec.hidden_size == 64);
  CHECK(spec.n_layers == 2);
  CHECK(spec.n_heads == 4);
  CHECK(spec.n_kv_heads == 2);
  CHECK(spec.head_dim == 16);
  CHECK(spec.mlp_size == 96);
  CHECK(spec.context_length == 128);
  CHECK(spec.norm_epsilon == 1e-5f);
  CHECK(spec.rope.kind == gpu::rope_kind::interleaved);
  CHECK(spec.rope.rotary_dim == 16);
  CHECK(spec.rope.inv_freq.size() == 8);
  CHECK(spec.rope.inv_freq[4] == Approx(0.01));
  CHECK(spec.attention_scale == 0.25f);
  CHECK(spec.tied_head);
  CHECK(layer_tensor(spec.names.q, 7) == "blk.7.attn_q.weight");
  CHECK(bias_of("blk.7.attn_q.weight") == "blk.7.attn_q.bias");
}

TEST_CASE("metadata that twill cannot run is refused with key, rule and value") {
  using std::int64_t;
  check_refused(errc::missing_metadata, "llama.block_count",
                [](auto& m) { m.entries.erase("llama.block_count"); });
  check_refused(errc::bad_metadata, "`llama.embedding_length` must be in 1..",
                [](auto& m) { m.entries["llama.embedding_length"] = int64_t{0}; });
  check_refused(errc::bad_metadata, "got 4294967296",
                [](auto& m) { m.entries["llama.block_count"] = int64_t{1} << 32; });
  check_refused(errc::bad_metadata, "n_heads must be a multiple of n_kv_heads, got 4 and 3",
                [](auto& m) { m.entries["llama.attention.head_count_kv"] = int64_t{3}; });
  check_refused(errc::bad_metadata, "must be an integer, got an array", [](auto& m) {
    m.entries["llama.attention.head_count_kv"] = gguf::int_array{2, 2};
  });
  check_refused(errc::bad_metadata, "rotary_dim must be even",
                [](auto& m) { m.entries["llama.rope.dimension_count"] = int64_t{7}; });
  check_refused(errc::bad_metadata, "llama.rope.dimension_count",
                [](auto& m) { m.entries["llama.rope.dimension_count"] = int64_t{18}; });
  check_refused(errc::bad_metadata, "freq_base` must be above 0",
                [](auto& m) { m.entries["llama.rope.freq_base"] = -1.0; });
  check_refused(errc::unsupported, "scaling.type` must be none, linear or yarn, got \"su\"",
                [](auto& m) { m.entries["llama.rope.scaling.type"] = std::string("su"); });
  check_refused(errc::bad_metadata, "scaling.factor` must be at least 0, got -2",
                [](auto& m) { m.entries["llama.rope.scaling.factor"] = -2.0; });
  check_refused(errc::bad_metadata, "freq_base` must be above 1 with YaRN, got 1", [](auto& m) {
    m.entries["llama.rope.scaling.type"] = std::string("yarn");
    m.entries["llama.rope.freq_base"] = 1.0;
  });
  check_refused(errc::unsupported, "experts",
                [](auto& m) { m.entries["llama.expert_count"] = int64_t{8}; });
  check_refused(errc::unsupported, "value_length",
                [](auto& m) { m.entries["llama.attention.value_length"] = int64_t{32}; });
  check_refused(errc::bad_metadata, "norm_epsilon",
                [](auto& m) { m.entries["llama.attention.layer_norm_rms_epsilon"] = 2.0; });
}

TEST_CASE("compute and KV types resolve from option words, weights and device") {
  gpu::device_info plain{.kind = "host", .isa = "avx2"}, wide{.kind = "host",
                                                              .isa = "avx512_bf16",
                                                              .multiplies_bf16 = true,
                                                              .half_kv = gpu::dtype::bf16};
  test::tiny_llama sizes;
  const auto q4 = open_file(test::make_tiny_llama(sizes));
  sizes.q_kind = sizes.k_kind = sizes.v_kind = sizes.gate_kind = sizes.up_kind = sizes.other_kind =
      1;
  const auto f16 = open_file(test::make_tiny_llama(sizes));
  CHECK(main_kind(*q4) == "Q4_1");
  CHECK(main_kind(*f16) == "F16");
  CHECK(resolve_compute("auto", "auto", {}, *q4, plain).value().compute == gpu::compute_type::int8);
  CHECK(resolve_compute("auto", "auto", {}, *q4, plain).value().kv_type == gpu::dtype::f16);
  CHECK(resolve_compute("auto", "auto", {}, *f16, plain).value().compute == gpu::compute_type::f32);
  CHECK(resolve_compute("auto", "auto", {}, *f16, plain).value().kv_type == gpu::dtype::f32);
  CHECK(resolve_compute("auto", "auto", {}, *f16, wide).value().compute == gpu::compute_type::bf16);
  CHECK(resolve_compute("w8a8", "auto", {}, *f16, wide).value().compute == gpu::compute_type::w8a8);
  CHECK(resolve_compute("w8a8", "auto", {}, *f16, wide).value().kv_type == gpu::dtype::bf16);
  CHECK(resolve_compute("f32", "bf16", {}, *q4, wide).value().compute == gpu::compute_type::f32);
  CHECK(resolve_compute("f32", "bf16", {}, *q4, wide).value().kv_type == gpu::dtype::bf16);
  CHECK(resolve_compute("fp8", "auto", {}, *q4, wide).detail() ==
        "`model.compute` must be auto, f32, f16, bf16, int8 or w8a8, got \"fp8\"");
  CHECK(resolve_compute("int8", "i4", {}, *q4, wide).code() == errc::unsupported);
  CHECK(resolve_compute("int8", "i4", {}, *q4, wide).detail() ==
        "`kv.type` must be auto, f32, f16, bf16 or int8, got \"i4\"");
}

TEST_CASE("kv.type names every KV type and no other") {
  test::tiny_llama sizes;
  const auto weights = open_file(test::make_tiny_llama(sizes));
  for (const std::string key : {"auto", "f32", "f16", "bf16", "int8", "i8", "u8", "fp8"}) {
    const auto loaded = config::load("", {{"--set", "kv.type", key, true}});
    const auto resolved = resolve_compute("f32", key, {}, *weights, {});
    INFO(key);
    CHECK(loaded.ok() == resolved.ok());
    if (resolved.ok()) CHECK(gpu::is_kv_type(resolved.value().kv_type));
  }
  const auto check_key = [](const std::string& key) {
    INFO(key);
    CHECK(config::load("", {{"--set", "kv.type", key, true}}).ok());
  };
  [&]<class... Elements>(gpu::kv_element_list<Elements...>) {
    (check_key(gpu::kv_element<Elements>::key), ...);
  }(gpu::kv_elements{});
}
