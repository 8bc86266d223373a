#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

#include "models/open/openers.hpp"

namespace twill::models {
namespace {

struct advice {
  std::string_view name; ///< a part of the model's name, in small letters and digits only
  float temperature;
  float top_p;
};

/// Values from the models' own web pages. The files of these models have no sampling defaults.
constexpr advice known[] = {
    {"smollm2", 0.2f, 0.9f},
};

std::string letters_and_digits(std::string_view name) {
  std::string out;
  for (const char c : name)
    if (const auto byte = static_cast<unsigned char>(c); std::isalnum(byte) != 0)
      out += static_cast<char>(std::tolower(byte));
  return out;
}

bool says_nothing(const config::sampling_params& from) {
  const config::sampling_params none;
  return from.temperature == none.temperature && from.top_k == none.top_k &&
         from.top_p == none.top_p && from.min_p == none.min_p &&
         from.repetition_penalty == none.repetition_penalty;
}

} // namespace

void put_known_sampling(model& opened) {
  if (opened.chat == nullptr || !says_nothing(opened.default_sampling)) return;
  std::string names = letters_and_digits(opened.name);
  for (const auto& other : opened.other_names)
    names += " " + letters_and_digits(other);
  for (const auto& one : known) {
    if (names.find(one.name) == names.npos) continue;
    opened.default_sampling.temperature = one.temperature;
    opened.default_sampling.top_p = one.top_p;
    return;
  }
}

} // namespace twill::models
