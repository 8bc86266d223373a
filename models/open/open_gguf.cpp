#include <cstdint>
#include <utility>

#include "config/options.hpp"
#include "models/checkpoint/gguf/file.hpp"
#include "models/compute.hpp"
#include "models/families/registry.hpp"
#include "models/open/model_names.hpp"
#include "models/open/openers.hpp"
#include "models/text/chat_conventions.hpp"
#include "models/text/tokenizer/gguf_tokenizer.hpp"

namespace twill::models {
namespace {

/// Reads the default sampling parameters that newer files have under general.sampling.
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
  if (const auto found = config::validate(params, config::limit_options{}, vocab_size))
    return failure{errc::bad_metadata, "general.sampling: " + text_of(*found)};
  return params;
}

result<nothing> read_text_side(const gguf::file& file, const std::string& template_path,
                               model& opened) {
  const auto family = families::gguf_family_of(file.meta());
  if (!family.ok()) return family.error();
  auto text = make_gguf_tokenizer(file.meta());
  if (!text.ok()) return text.error();
  opened.text = std::move(text).value();
  if (auto fits = check_vocabulary(*opened.text, opened.spec); !fits.ok()) return fits;
  const auto known = [&] { return known_gguf_chat_template(family.value()->chat, *opened.text); };
  if (auto put = put_templates(gguf_template_sources(file.meta()), template_path, known, opened);
      !put.ok())
    return put;
  auto sampling = read_sampling(file.meta(), opened.spec.vocab_size);
  if (!sampling.ok()) return sampling.error();
  opened.default_sampling = std::move(sampling).value();
  return nothing{};
}

} // namespace

opened_model open_gguf_model(const std::string& path, const std::string& template_path) {
  auto file = gguf::file::open(path);
  if (!file.ok()) return file.error();
  const gguf::file& gguf = *file.value();

  auto opened = std::make_shared<model>();
  auto spec = families::gguf_spec_of(gguf.meta(), gguf);
  if (!spec.ok()) return in_file(path, spec.error());
  opened->spec = std::move(spec).value();
  const auto* name = gguf.meta().find<std::string>("general.name");
  auto names = names_of(name == nullptr ? "" : *name, path);
  opened->name = std::move(names.id);
  opened->other_names = std::move(names.others);
  opened->path = path;
  opened->format = "GGUF v" + std::to_string(gguf.version());
  if (gguf.files().size() > 1)
    opened->format += ", " + std::to_string(gguf.files().size()) + " files";
  opened->quantization = main_kind(gguf);
  if (auto text = read_text_side(gguf, template_path, *opened); !text.ok())
    return in_file(path, text.error());
  put_known_sampling(*opened);
  opened->files = gguf.files();
  opened->weights = std::move(file).value();
  return std::shared_ptr<const model>(std::move(opened));
}

} // namespace twill::models
