#include "models/checkpoint/quant/config.hpp"

#include <algorithm>
#include <cctype>
#include <initializer_list>

#include "models/checkpoint/quoted.hpp"

namespace twill::models::quant {
namespace {

/// Returns the value of the first of `keys` that the object has with a value other than null.
const value* find_any(const value& object, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (const value* found = object.find(key); found != nullptr && !found->is_null()) return found;
  return nullptr;
}

std::string lower_word(const value* v) {
  if (v == nullptr || v->as_string() == nullptr) return {};
  std::string word = *v->as_string();
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return word;
}

bool is_true(const value* v) {
  return v != nullptr && v->as_bool() != nullptr && *v->as_bool();
}

result<std::int32_t> read_int(const value& object, std::initializer_list<const char*> keys,
                              const std::string& where) {
  const value* found = find_any(object, keys);
  const std::int64_t* number = found == nullptr ? nullptr : found->as_int();
  if (number == nullptr || *number < -1 || *number > (1 << 30))
    return failure{errc::bad_metadata, where + ": `" + *keys.begin() + "` must be a whole number" +
                                           (number ? ", got " + std::to_string(*number) : "")};
  return static_cast<std::int32_t>(*number);
}

failure unsupported(const std::string& where, const std::string& why) {
  return {errc::unsupported, where + ": " + why};
}

result<nothing> check_layout(const value& object, const quant_config& c, const std::string& where) {
  if (c.method == method::awq) {
    const std::string version = lower_word(object.find("version"));
    if (!version.empty() && version != "gemm")
      return unsupported(where, "`version` of AWQ must be gemm, got " + quoted_name(version));
    if (c.bits != 4)
      return unsupported(where, "`bits` of AWQ must be 4, got " + std::to_string(c.bits));
    return nothing{};
  }
  if (c.bits != 4 && c.bits != 8)
    return unsupported(where, "`bits` of GPTQ must be 4 or 8, got " + std::to_string(c.bits));
  const std::string layout = lower_word(object.find("checkpoint_format"));
  if (!layout.empty() && layout != "gptq" && layout != "gptq_v2")
    return unsupported(where,
                       "`checkpoint_format` must be gptq or gptq_v2, got " + quoted_name(layout));
  if (is_true(object.find("is_marlin_format")))
    return unsupported(where, "`is_marlin_format` must be false: Marlin's order is not read");
  const value* dynamic = object.find("dynamic");
  if (dynamic != nullptr && dynamic->as_object() != nullptr && !dynamic->as_object()->empty())
    return unsupported(where, "`dynamic` (settings that differ by module) is not read");
  return nothing{};
}

} // namespace

std::string quant_config::name() const {
  return (method == method::gptq ? "GPTQ-" : "AWQ-") + std::to_string(bits);
}

result<quant_config> read_config(const value& object, const std::string& where,
                                 std::optional<method> assumed) {
  quant_config c;
  if (object.as_object() == nullptr)
    return failure{errc::bad_metadata, where + " must be an object"};
  const std::string word = lower_word(object.find("quant_method"));
  if (word == "gptq" || (word.empty() && assumed == method::gptq))
    c.method = method::gptq;
  else if (word == "awq" || (word.empty() && assumed == method::awq))
    c.method = method::awq;
  else
    return unsupported(where, "`quant_method` must be gptq or awq, got " + quoted_name(word));

  auto bits = read_int(object, {"bits", "w_bit"}, where);
  if (!bits.ok()) return bits.error();
  auto group = read_int(object, {"group_size", "q_group_size"}, where);
  if (!group.ok()) return group.error();
  if (group.value() == 0)
    return failure{errc::bad_metadata, where + ": `group_size` must be -1 or positive, got 0"};
  c.bits = bits.value();
  c.group_size = group.value();
  c.zeros_less_one = lower_word(object.find("checkpoint_format")) != "gptq_v2";
  if (auto layout = check_layout(object, c, where); !layout.ok()) return layout.error();
  return c;
}

} // namespace twill::models::quant
