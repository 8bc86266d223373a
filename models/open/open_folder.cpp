#include <utility>

#include "models/checkpoint/folder.hpp"
#include "models/compute.hpp"
#include "models/families/registry.hpp"
#include "models/open/model_names.hpp"
#include "models/open/openers.hpp"
#include "models/open/unfetched.hpp"
#include "models/synth/dummy.hpp"
#include "models/text/chat_conventions.hpp"
#include "models/text/tokenizer/folder_tokenizer.hpp"

namespace twill::models {
namespace {

/// The parts of a model that both folders and random models have.
struct parts {
  const value* config = nullptr;
  const value* generation_config = nullptr;
  const families::family* family = nullptr;
  template_sources templates; ///< templates from the folder's files
};

result<nothing> read_spec(const value& config, model& opened) {
  auto spec = families::spec_of(config, *opened.weights);
  if (!spec.ok()) return spec.error();
  opened.spec = std::move(spec).value();
  return nothing{};
}

/// Sets all members of `opened` that depend on its spec and tokenizer.
result<nothing> finish(const parts& p, const std::string& template_path, model& opened) {
  if (opened.quantization.empty()) opened.quantization = main_kind(*opened.weights);
  if (auto fits = check_vocabulary(*opened.text, opened.spec); !fits.ok()) return fits;
  const auto known = [&] {
    return known_chat_template(p.family->chat, {*p.config, *opened.text, p.generation_config});
  };
  if (auto put = put_templates(p.templates, template_path, known, opened); !put.ok()) return put;
  auto sampling = generation_defaults(p.generation_config, opened.spec.vocab_size);
  if (!sampling.ok()) return sampling.error();
  opened.default_sampling = std::move(sampling).value();
  return nothing{};
}

} // namespace

opened_model open_folder_model(const std::string& path, const std::string& template_path) {
  auto read = folder::open(path);
  if (!read.ok()) return read.error();
  const folder& files = *read.value();
  if (auto fetched = check_fetched(files.path()); !fetched.ok()) return fetched.error();
  parts p;
  p.config = &files.config();
  p.generation_config = files.generation_config();
  auto family = families::family_of(files.config());
  if (!family.ok()) return in_file(path, family.error());
  p.family = family.value();
  p.templates = folder_template_sources(files.path(), files.tokenizer_config());

  auto opened = std::make_shared<model>();
  auto names = names_of("", files.path());
  opened->name = std::move(names.id);
  opened->other_names = std::move(names.others);
  opened->path = path;
  opened->format = "Hugging Face folder";
  opened->quantization = files.quantization();
  opened->weights = files.weights();
  opened->files = files.files();
  if (auto read = read_spec(files.config(), *opened); !read.ok())
    return in_file(path, read.error());
  auto text = make_folder_tokenizer({.path = files.path(),
                                     .hints = p.family->tokenizer,
                                     .config = &files.config(),
                                     .tokenizer_config = files.tokenizer_config(),
                                     .generation_config = files.generation_config(),
                                     .embedding_rows = opened->spec.vocab_size});
  if (!text.ok()) return in_file(path, text.error());
  opened->text = std::move(text).value();
  if (auto done = finish(p, template_path, *opened); !done.ok()) return in_file(path, done.error());
  put_known_sampling(*opened);
  return std::shared_ptr<const model>(std::move(opened));
}

opened_model open_dummy_model(const std::string& path, const std::string& template_path) {
  auto opened_dummy = synth::open_dummy(path);
  if (!opened_dummy.ok()) return opened_dummy.error();
  const synth::dummy_model& dummy = opened_dummy.value();
  parts p;
  p.config = &dummy.config;
  p.generation_config = dummy.generation_config.is_null() ? nullptr : &dummy.generation_config;
  auto family = families::family_of(dummy.config);
  if (!family.ok()) return in_file(path, family.error());
  p.family = family.value();

  auto opened = std::make_shared<model>();
  opened->name = dummy.name;
  opened->path = path;
  opened->format = "random weights, made in memory";
  opened->quantization = dummy.quantization;
  opened->weights = dummy.weights;
  opened->text = dummy.text;
  if (auto read = read_spec(dummy.config, *opened); !read.ok()) return in_file(path, read.error());
  if (auto done = finish(p, template_path, *opened); !done.ok()) return in_file(path, done.error());
  return std::shared_ptr<const model>(std::move(opened));
}

} // namespace twill::models
