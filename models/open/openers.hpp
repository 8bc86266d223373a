// openers: one function for each kind of path that open_model() accepts, and functions that these
// share. Internal to models/.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "config/base/value.hpp"
#include "models/model.hpp"
#include "models/text/template_sources.hpp"

namespace twill::models {

using opened_model = result<std::shared_ptr<const model>>;

opened_model open_gguf_model(const std::string& path, const std::string& template_path);
opened_model open_folder_model(const std::string& path, const std::string& template_path);
opened_model open_dummy_model(const std::string& path, const std::string& template_path);

/// Sets the chat templates of `opened`, whose tokenizer must be set. If `template_path` is not
/// empty, the file there is the only template, and an error in it is a failure. Otherwise the
/// templates are those of `sources`; if they lack a default template, the result of `known()`, the
/// source of twill's own template for the model's family, is used. An error in a template from the
/// model's own files is logged and the template ignored, so that the other templates, and
/// completions without a template, still work.
result<nothing> put_templates(const template_sources& sources, const std::string& template_path,
                              const std::function<std::string()>& known, model& opened);

/// Fails with bad_metadata when the tokenizer has ids beyond the embedding.
result<nothing> check_vocabulary(const tokenizer& text, const model_spec& spec);

/// Sets the sampling parameters that the authors advise for models that answer nonsense without
/// them. Applies to a model that has a chat template and whose files have no sampling defaults.
void put_known_sampling(model& opened);

/// Reads the sampling parameters of generation_config.json, which may be null. If `do_sample` is
/// false, the temperature is 0.
result<config::sampling_params> generation_defaults(const value* generation_config,
                                                    std::int32_t vocab_size);

} // namespace twill::models
