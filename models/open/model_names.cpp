#include "models/open/model_names.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string_view>

#include "models/text/detokenizer.hpp"

namespace twill::models {
namespace {

namespace fs = std::filesystem;

bool is_printable(const std::string& name) {
  for (const char c : name)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return false;
  return !name.empty() && name.size() <= 200 && is_utf8(name);
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// True for a kind of weights: "q4_1", "iq4_xs", "q4_k_m", "f16", "bf16", "fp32", ...
bool is_kind_of_weights(const std::string& word) {
  for (const char* plain : {"f16", "f32", "bf16", "fp16", "fp32"})
    if (word == plain) return true;
  std::string_view rest = word;
  const auto is_part = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  if (!std::all_of(rest.begin(), rest.end(), is_part)) return false;
  if (rest.starts_with('i')) rest.remove_prefix(1);
  return rest.size() >= 2 && rest[0] == 'q' && std::isdigit(static_cast<unsigned char>(rest[1])) &&
         (rest.size() == 2 || rest[2] == '_');
}

/// Removes "-00001-of-00003" from the end of `name`.
std::string without_shard(std::string name) {
  const auto of = name.rfind("-of-");
  if (of == name.npos || !all_digits(std::string_view(name).substr(of + 4))) return name;
  const auto dash = name.rfind('-', of - 1);
  if (of == 0 || dash == name.npos || dash == 0 ||
      !all_digits(std::string_view(name).substr(dash + 1, of - dash - 1)))
    return name;
  name.erase(dash);
  return name;
}

/// Removes a kind of weights (".Q4_1", "-Q4_K_M" or "_f16") from the end of `name`. A name that is
/// nothing but a kind of weights stays.
std::string without_kind(std::string name) {
  for (auto at = name.find_first_of(".-_", 1); at != name.npos && at > 0;
       at = name.find_first_of(".-_", at + 1))
    if (is_kind_of_weights(lower(name.substr(at + 1)))) {
      name.erase(at);
      break;
    }
  return name;
}

/// Returns the last part of `path`, without ".gguf". In Hugging Face's cache, where the path is
/// ".../models--ORGANISATION--NAME/snapshots/REVISION", this function returns NAME.
std::string last_part(const std::string& path) {
  auto whole = fs::path(path).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  const auto above = whole.parent_path();
  if (above.filename() == "snapshots") {
    const auto name = above.parent_path().filename().string();
    const auto dashes = name.rfind("--");
    if (name.starts_with("models--") && dashes + 2 < name.size()) return name.substr(dashes + 2);
  }
  return whole.extension() == ".gguf" ? whole.stem().string() : whole.filename().string();
}

/// Puts '-' in place of every run of characters that would need quotes in a shell or in a URL.
std::string without_spaces(const std::string& name) {
  std::string out;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = std::isalnum(byte) != 0 || byte >= 0x80 || c == '.' || c == '_' || c == '+';
    if (plain)
      out += c;
    else if (!out.empty() && out.back() != '-')
      out += '-';
  }
  while (!out.empty() && out.back() == '-')
    out.pop_back();
  return out;
}

/// True for names that converters give to the file of any model.
bool says_nothing(const std::string& name) {
  const auto word = lower(name);
  for (const char* usual :
       {"", "model", "ggml-model", "gguf", "ggml", "output", "weights", ".", ".."})
    if (word == usual) return true;
  return is_kind_of_weights(word);
}

} // namespace

model_names names_of(const std::string& given, const std::string& path) {
  const std::string own = is_printable(given) ? given : "";
  const std::string file = is_printable(last_part(path)) ? last_part(path) : "";
  const std::string short_file = without_kind(without_shard(file));
  model_names names;
  names.id =
      without_spaces(says_nothing(short_file) && !without_spaces(own).empty() ? own : short_file);
  if (names.id.empty()) names.id = "model";
  for (const auto& name : {own, without_spaces(own), file}) {
    const bool known =
        name.empty() || name == names.id ||
        std::find(names.others.begin(), names.others.end(), name) != names.others.end();
    if (!known) names.others.push_back(name);
  }
  return names;
}

} // namespace twill::models
