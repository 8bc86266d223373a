#include "models/open/openers.hpp"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <utility>

#include "config/base/log.hpp"
#include "config/base/units.hpp"
#include "models/checkpoint/lfs_pointer.hpp"

namespace twill::models {
namespace {

constexpr std::int64_t max_template_bytes = 1 * mib;

result<std::string> read_template_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text;
  text.resize(static_cast<std::size_t>(max_template_bytes) + 1);
  if (in) in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!in.is_open() || in.bad()) return failure{errc::file_unreadable, path + ": cannot be read"};
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (is_lfs_pointer(text)) return failure{errc::file_unreadable, path + lfs_pointer_words};
  if (static_cast<std::int64_t>(text.size()) > max_template_bytes)
    return failure{errc::bad_template, path + ": a chat template must be at most 1 MiB"};
  return text;
}

} // namespace

result<nothing> put_templates(const template_sources& sources, const std::string& template_path,
                              const std::function<std::string()>& known, model& opened) {
  const tokenizer& text = *opened.text;
  const auto parse = [&](const std::string& from) {
    return chat_template::parse(from, text.token_bytes(text.bos_id(), true),
                                text.token_bytes(text.eos_id(), true));
  };
  if (!template_path.empty()) {
    auto named = read_template_file(template_path);
    if (!named.ok()) return named.error();
    auto parsed = parse(named.value());
    if (!parsed.ok()) return in_file(template_path, parsed.error());
    opened.chat = std::move(parsed).value();
    return nothing{};
  }
  for (const std::string& fault : sources.faults)
    log::warn("a chat template of the model's own is not used: " + fault);
  const std::string source = sources.main.empty() ? known() : sources.main;
  if (!source.empty()) {
    auto parsed = parse(source);
    if (parsed.ok())
      opened.chat = std::move(parsed).value();
    else
      log::warn("the model's own chat template is not used: " + parsed.detail());
  }
  for (const auto& [name, other] : sources.others) {
    auto parsed = parse(other);
    if (parsed.ok())
      opened.other_chats.push_back({name, std::move(parsed).value()});
    else
      log::warn("the model's own chat template \"" + name +
                "\" is not used, and the default one stands in for it: " + parsed.detail());
  }
  return nothing{};
}

result<nothing> check_vocabulary(const tokenizer& text, const model_spec& spec) {
  if (text.vocab_size() <= spec.vocab_size) return nothing{};
  return failure{errc::bad_metadata,
                 "the tokenizer must have at most as many tokens as the embedding has rows (" +
                     std::to_string(spec.vocab_size) + "), got " +
                     std::to_string(text.vocab_size())};
}

} // namespace twill::models
