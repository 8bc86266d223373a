// kv_element: the entries of the table, and that no other type is accepted as a KV element.
#include "gpu/attention/kv_element.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <type_traits>

#include "tests/catch.hpp"
#include "tests/gpu/load_kv.hpp"

using namespace twill::gpu;

namespace {

/// A one-byte type for which kv_element has no entry.
struct other_code {
  std::int8_t bits;
};

template <class Element>
concept in_table = requires {
  kv_element<Element>::scaled;
};
template <class Element>
concept can_be_read = requires(Element x) {
  detail::widen(x);
};
template <class Element>
concept can_be_stored = requires(Element* to, const float* x) {
  detail::store_row(to, x, 1);
};

static_assert(in_table<kv_i8> && can_be_read<kv_i8> && can_be_stored<kv_i8>);
static_assert(!in_table<other_code> && !can_be_read<other_code> && !can_be_stored<other_code>);
static_assert(!in_table<std::int8_t> && !in_table<std::uint16_t> && !in_table<double>);

} // namespace

TEST_CASE("the element types of KV are those of the table", "[attention]") {
  for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16, dtype::i8}) {
    CHECK(is_kv_type(type));
    CHECK(has_kv_scales(type) == (type == dtype::i8));
  }
  for (const dtype type : {dtype::i32, dtype::u8}) {
    CHECK_FALSE(is_kv_type(type));
    CHECK_FALSE(has_kv_scales(type));
  }
  for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16, dtype::i8})
    with_kv_element(type, [type](auto element) {
      CHECK(kv_element<decltype(element)>::type == type);
      CHECK(sizeof(element) == size_of(type));
    });
}

TEST_CASE("a row of KV is read as it was stored", "[attention]") {
  const float row[] = {0.0f, 1.0f, -0.5f, 127.0f, -3.0f};
  for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16, dtype::i8})
    with_kv_element(type, [&](auto element) {
      decltype(element) stored[5];
      const float scale = detail::store_row(stored, row, 5);
      CHECK(scale == (type == dtype::i8 ? 1.0f : 0.0f));
      const float expected[] = {0.0f, 1.0f, type == dtype::i8 ? 0.0f : -0.5f, 127.0f, -3.0f};
      for (int i = 0; i < 5; ++i) {
        CHECK(load_kv(stored, type, i) == expected[i]);
        decltype(element) alone;
        detail::store_one(alone, row[i], 1.0f);
        CHECK(detail::widen(alone) == expected[i]);
      }
    });
}
