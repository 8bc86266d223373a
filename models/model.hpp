// model: a model that was opened from a path and checked, but is not yet loaded on a device.
//
// Immutable after open_model(); any thread may read. The executor actor, which runs the model, uses
// the weights; the session actors, one per request, use the tokenizer and the chat templates.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/sampling.hpp"
#include "models/checkpoint/checkpoint.hpp"
#include "models/checkpoint/mapped_file.hpp"
#include "models/errc.hpp"
#include "models/spec.hpp"
#include "models/text/chat_template.hpp"
#include "models/text/tokenizer.hpp"

namespace twill::models {

struct model {
  std::string name; ///< name of the file or folder, without spaces and without the weight kind
  std::vector<std::string> other_names; ///< other names that clients may use for the model
  std::string path;
  std::string format;       ///< "GGUF v3", ...
  std::string quantization; ///< "Q4_1", ...: the kind that most weights have
  model_spec spec;
  std::shared_ptr<const checkpoint> weights;
  std::shared_ptr<const tokenizer> text;
  std::shared_ptr<const chat_template> chat; ///< the default one; null when the model has none
  std::vector<named_template> other_chats;   ///< empty where the operator's template file replaces
                                             ///< all templates
  config::sampling_params default_sampling;  ///< as the model's files or its authors recommend
  bool has_chat() const { return chat != nullptr || !other_chats.empty(); }
  /// The files that determine what the model computes: weights and configuration. Empty for random
  /// weights.
  std::vector<std::shared_ptr<const mapped_file>> files;
};

/// Opens a GGUF file, a Hugging Face folder or a weight file in one, or "dummy:PRESET" (random
/// weights, see models/synth/dummy.hpp). For a GGUF model in several files, `path` may be any of
/// the files or their folder. `template_path` replaces the model's own chat templates when not
/// empty.
result<std::shared_ptr<const model>> open_model(const std::string& path,
                                                const std::string& template_path = {});

} // namespace twill::models
