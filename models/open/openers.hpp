// openers: one function per kind of path that open_model() takes. Internal to models/.
#pragma once

#include <memory>
#include <string>

#include "config/base/value.hpp"
#include "models/model.hpp"

namespace twill::models {

using opened_model = result<std::shared_ptr<const model>>;

opened_model open_gguf_model(const std::string& path, const std::string& template_path);
opened_model open_folder_model(const std::string& path, const std::string& template_path);
opened_model open_dummy_model(const std::string& path, const std::string& template_path);

/// The template file at `template_path` when not empty, else `source`, parsed; null when there is
/// neither. A broken template of the model itself only warns: plain completions are still served.
result<std::shared_ptr<const chat_template>>
make_template(const tokenizer& text, const std::string& source, const std::string& template_path);

/// The tokenizer must not have ids beyond the embedding.
result<nothing> check_vocabulary(const tokenizer& text, const model_spec& spec);

/// `name` when it is short, printable UTF-8 (names reach clients as JSON), else the file's or
/// folder's name of `path`.
std::string display_name(const std::string& name, const std::string& path);

/// What generation_config.json says about sampling; `config` may be null. Explicitly no sampling
/// (`do_sample` false) is greedy.
result<config::sampling_params> generation_defaults(const value* generation_config,
                                                    std::int32_t vocab_size);

} // namespace twill::models
