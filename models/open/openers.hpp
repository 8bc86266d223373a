// openers: one function per kind of path that open_model() takes, and what they share. Internal to
// models/.
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

/// Puts the chat templates into `opened`, which has its tokenizer: the one in the file at
/// `template_path`, or those of `sources` when that path is empty, with the default `known()` where
/// they have none. A broken source is the model's own: it is logged and ignored, so that the other
/// templates and completions without one are still served.
result<nothing> put_templates(const template_sources& sources, const std::string& template_path,
                              const std::function<std::string()>& known, model& opened);

/// Fails with bad_metadata when the tokenizer has ids beyond the embedding.
result<nothing> check_vocabulary(const tokenizer& text, const model_spec& spec);

/// The authors' advice for models that clients otherwise find talking nonsense, applied to a model
/// that has a chat template and whose files say nothing about sampling.
void put_known_sampling(model& opened);

/// The sampling parameters of generation_config.json, which may be null. `do_sample` false means a
/// temperature of 0.
result<config::sampling_params> generation_defaults(const value* generation_config,
                                                    std::int32_t vocab_size);

} // namespace twill::models
