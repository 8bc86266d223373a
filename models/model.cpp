#include "models/model.hpp"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <utility>

#include "config/base/log.hpp"
#include "config/base/units.hpp"
#include "config/options.hpp"
#include "models/compute.hpp"
#include "models/detokenizer.hpp"
#include "models/families/gguf_llama.hpp"
#include "models/gguf/file.hpp"
#include "models/tokenizer/gguf_tokenizer.hpp"

namespace twill::models {
namespace {

constexpr std::int64_t max_template_bytes = 1 * mib;

failure in_file(const std::string& path, const failure& f) {
  return {f.code, path + ": " + f.detail};
}

result<model_spec> read_spec(const gguf::file& file) {
  auto architecture = file.meta().get_string("general.architecture");
  if (!architecture.ok()) return architecture.error();
  if (architecture.value() == "llama") return families::gguf_llama_spec(file.meta(), file);
  return failure{errc::unsupported, "`general.architecture` must be llama, got \"" +
                                        architecture.value().substr(0, 200) + "\""};
}

/// Names reach clients as JSON: plain, valid text only.
bool is_printable(const std::string& name) {
  for (const char c : name)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return false;
  return !name.empty() && name.size() <= 200 && is_utf8(name);
}

std::string model_name(const gguf::metadata& meta, const std::string& path) {
  const auto* name = meta.find<std::string>("general.name");
  if (name != nullptr && is_printable(*name)) return *name;
  const std::string stem = std::filesystem::path(path).stem().string();
  return is_printable(stem) ? stem : "model";
}

result<std::string> read_template_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text;
  text.resize(static_cast<std::size_t>(max_template_bytes) + 1);
  if (in) in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!in.is_open() || in.bad()) return failure{errc::file_unreadable, path + ": cannot be read"};
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (static_cast<std::int64_t>(text.size()) > max_template_bytes)
    return failure{errc::bad_template, path + ": a chat template must be at most 1 MiB"};
  return text;
}

/// Null without a template. A broken template of the model itself must not keep it from serving
/// plain completions; one that the user named must.
result<std::shared_ptr<const chat_template>>
read_template(const gguf::metadata& meta, const tokenizer& text, const std::string& template_path) {
  const auto parse = [&](const std::string& source) {
    return chat_template::parse(source, text.token_bytes(text.bos_id(), true),
                                text.token_bytes(text.eos_id(), true));
  };
  if (!template_path.empty()) {
    auto source = read_template_file(template_path);
    if (!source.ok()) return source.error();
    auto parsed = parse(source.value());
    if (!parsed.ok()) return in_file(template_path, parsed.error());
    return parsed;
  }
  const auto* source = meta.find<std::string>("tokenizer.chat_template");
  if (source == nullptr || source->empty()) return std::shared_ptr<const chat_template>();
  auto parsed = parse(*source);
  if (parsed.ok()) return parsed;
  log::warn("the model's own chat template is not used: " + parsed.detail());
  return std::shared_ptr<const chat_template>();
}

/// Generation defaults that newer files carry under general.sampling.
result<config::sampling_params> read_sampling(const gguf::metadata& meta, std::int32_t vocab_size) {
  config::sampling_params params;
  const std::pair<const char*, float*> numbers[] = {
      {"general.sampling.temp", &params.temperature},
      {"general.sampling.top_p", &params.top_p},
      {"general.sampling.min_p", &params.min_p},
      {"general.sampling.penalty_repeat", &params.repetition_penalty},
  };
  for (const auto& [key, target] : numbers) {
    auto value = meta.get_float_or(key, static_cast<double>(*target));
    if (!value.ok()) return value.error();
    *target = static_cast<float>(value.value());
  }
  auto top_k = meta.get_int_or("general.sampling.top_k", -1, vocab_size, params.top_k);
  if (!top_k.ok()) return top_k.error();
  params.top_k = static_cast<std::int32_t>(top_k.value());
  const auto valid = config::validate(params, config::limit_options{}, vocab_size);
  if (!valid.ok()) return failure{errc::bad_metadata, "general.sampling: " + valid.detail()};
  return params;
}

result<nothing> read_text_side(const gguf::file& file, const std::string& template_path,
                               model& opened) {
  auto text = make_gguf_tokenizer(file.meta());
  if (!text.ok()) return text.error();
  opened.text = std::move(text).value();
  if (opened.text->vocab_size() > opened.spec.vocab_size)
    return failure{errc::bad_metadata,
                   "the tokenizer must have at most as many tokens as the embedding has rows (" +
                       std::to_string(opened.spec.vocab_size) + "), got " +
                       std::to_string(opened.text->vocab_size())};
  auto chat = read_template(file.meta(), *opened.text, template_path);
  if (!chat.ok()) return chat.error();
  opened.chat = std::move(chat).value();
  auto sampling = read_sampling(file.meta(), opened.spec.vocab_size);
  if (!sampling.ok()) return sampling.error();
  opened.default_sampling = std::move(sampling).value();
  return nothing{};
}

} // namespace

result<std::shared_ptr<const model>> open_model(const std::string& path,
                                                const std::string& template_path) {
  auto file = gguf::file::open(path);
  if (!file.ok()) return file.error();
  const gguf::file& gguf = *file.value();

  auto opened = std::make_shared<model>();
  auto spec = read_spec(gguf);
  if (!spec.ok()) return in_file(path, spec.error());
  opened->spec = std::move(spec).value();
  opened->name = model_name(gguf.meta(), path);
  opened->path = path;
  opened->format = "GGUF v" + std::to_string(gguf.version());
  opened->quantization = main_kind(gguf);
  if (auto text = read_text_side(gguf, template_path, *opened); !text.ok())
    return in_file(path, text.error());
  opened->weights = std::move(file).value();
  return std::shared_ptr<const model>(std::move(opened));
}

} // namespace twill::models
