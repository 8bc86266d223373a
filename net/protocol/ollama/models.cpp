#include "net/protocol/ollama/models.hpp"

#include <algorithm>
#include <chrono>
#include <string_view>

#include "net/digest.hpp"
#include "net/protocol/json/json_writer.hpp"
#include "net/protocol/ollama/times.hpp"

namespace twill::net {
namespace {

/// The time when a model will be unloaded: never, since twill does not unload idle models.
constexpr const char* never = "2999-12-31T23:59:59Z";

std::string time_of_unix(std::int64_t unix_s) {
  return rfc3339(std::chrono::system_clock::time_point(std::chrono::seconds(unix_s)));
}

std::string modified_at(const ollama_model& model) {
  return time_of_unix(model.files.modified_unix_s > 0 ? model.files.modified_unix_s
                                                      : model.info.created_unix_s);
}

/// Returns a digest of the model's name and of its files' size and time, which changes only when
/// the files change. It is computed without reading the weights, and does not reveal the path.
std::string digest_of(const ollama_model& model) {
  digest hash(digest_kind::sha256);
  hash.add(model.info.id);
  hash.add("\n" + std::to_string(model.files.bytes) + "\n" +
           std::to_string(model.files.modified_unix_s));
  return hash.hex();
}

/// Writes `details`. The number of parameters of the model is unknown here.
void add_details(json_writer& json, const ollama_model& model) {
  json.key("details")
      .begin_object()
      .field("parent_model", "")
      .field("format", model.files.format)
      .field("family", model.info.family)
      .key("families")
      .begin_array()
      .add(model.info.family)
      .end_array()
      .field("parameter_size", "")
      .field("quantization_level", model.info.quantization)
      .end_object();
}

void add_names(json_writer& json, const ollama_model& model) {
  const auto name = tagged_name(model.info.id);
  json.field("name", name).field("model", name);
}

bool has_weights(const actors::model_info& model) {
  return model.state == actors::model_state::ready || model.state == actors::model_state::draining;
}

void add_parameter(std::string& lines, std::string_view name, const std::string& written) {
  constexpr std::size_t width = 31;
  if (!lines.empty()) lines += '\n';
  lines += name;
  lines.append(width - std::min(width - 1, name.size()), ' ');
  lines += written;
}

std::string number_text(float number) {
  std::string text;
  json_writer(text).add(number);
  return text;
}

/// Returns the PARAMETER lines of a Modelfile: the values that apply if a request sets none.
std::string parameter_lines(const actors::model_info& model) {
  const config::sampling_params off;
  const auto& defaults = model.default_sampling;
  std::string lines;
  add_parameter(lines, "num_ctx", std::to_string(model.max_model_len));
  add_parameter(lines, "temperature", number_text(defaults.temperature));
  if (defaults.top_k != off.top_k) add_parameter(lines, "top_k", std::to_string(defaults.top_k));
  if (defaults.top_p != off.top_p) add_parameter(lines, "top_p", number_text(defaults.top_p));
  if (defaults.min_p != off.min_p) add_parameter(lines, "min_p", number_text(defaults.min_p));
  if (defaults.repetition_penalty != off.repetition_penalty)
    add_parameter(lines, "repeat_penalty", number_text(defaults.repetition_penalty));
  return lines;
}

bool mentions(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

/// Derives the capabilities from the chat template, because only the template shows what a model
/// was trained for. The template of a model with tools mentions tools; the template of a model that
/// thinks contains the tag <think> or </think> or the variable `enable_thinking`.
void add_capabilities(json_writer& json, const std::string& chat_template) {
  json.key("capabilities").begin_array().add("completion");
  if (mentions(chat_template, "tools")) json.add("tools");
  if (mentions(chat_template, "<think>") || mentions(chat_template, "</think>") ||
      mentions(chat_template, "enable_thinking"))
    json.add("thinking");
  json.end_array();
}

} // namespace

std::string tagged_name(const std::string& id) {
  const auto slash = id.rfind('/');
  const bool tagged = id.find(':', slash == std::string::npos ? 0 : slash) != std::string::npos;
  return tagged ? id : id + ":latest";
}

std::string ollama_tags_body(std::span<const ollama_model> models) {
  std::string out;
  json_writer json(out);
  json.begin_object().key("models").begin_array();
  for (const auto& model : models) {
    json.begin_object();
    add_names(json, model);
    json.field("modified_at", modified_at(model))
        .field("size", model.files.bytes)
        .field("digest", digest_of(model));
    add_details(json, model);
    json.end_object();
  }
  json.end_array().end_object();
  return out;
}

std::string ollama_ps_body(std::span<const ollama_model> models) {
  std::string out;
  json_writer json(out);
  json.begin_object().key("models").begin_array();
  for (const auto& model : models) {
    if (!has_weights(model.info)) continue;
    const auto bytes = model.info.need_bytes > 0 ? model.info.need_bytes : model.files.bytes;
    json.begin_object();
    add_names(json, model);
    json.field("size", bytes).field("digest", digest_of(model));
    add_details(json, model);
    json.field("expires_at", never)
        .field("size_vram", model.on_gpu ? bytes : 0)
        .field("context_length", model.info.max_model_len)
        .end_object();
  }
  json.end_array().end_object();
  return out;
}

std::string ollama_show_body(const ollama_model& model, const std::string& chat_template) {
  std::string out;
  json_writer json(out);
  json.begin_object()
      .field("modelfile",
             "# twill serves this model as it is configured, not by a Modelfile.\nFROM " +
                 tagged_name(model.info.id) + "\n")
      .field("parameters", parameter_lines(model.info))
      .field("template", chat_template);
  add_details(json, model);
  json.key("model_info")
      .begin_object()
      .field("general.architecture", model.info.family)
      .field("general.basename", model.info.id)
      .field(model.info.family + ".context_length", model.info.max_model_len)
      .field(model.info.family + ".vocab_size", model.info.vocab_size)
      .end_object();
  add_capabilities(json, chat_template);
  json.field("modified_at", modified_at(model)).end_object();
  return out;
}

std::string ollama_version_body() {
  std::string out;
  json_writer(out)
      .begin_object()
      .field("version", ollama_api_version)
      .field("twill", TWILL_VERSION)
      .end_object();
  return out;
}

} // namespace twill::net
