#include "net/protocol/openai/models.hpp"

#include "net/protocol/json/json_writer.hpp"

namespace twill::net {

const char* name_of(actors::model_state state) {
  using actors::model_state;
  switch (state) {
  case model_state::ready:
    return "ready";
  case model_state::asleep:
    return "asleep";
  case model_state::loading:
    return "loading";
  case model_state::draining:
    return "draining";
  case model_state::unloaded:
    return "unloaded";
  case model_state::failed:
    break;
  }
  return "failed";
}

namespace {

void add_model(json_writer& json, const actors::model_info& model) {
  json.begin_object()
      .field("id", model.id)
      .field("object", "model")
      .field("created", model.created_unix_s)
      .field("owned_by", "twill")
      .field("root", model.id)
      .field("parent", nullptr)
      .field("max_model_len", model.max_model_len)
      .field("vocab_size", model.vocab_size)
      .field("family", model.family)
      .field("quantization", model.quantization)
      .field("has_chat_template", model.has_chat_template)
      .field("state", name_of(model.state))
      .key("permission")
      .raw("[]")
      .end_object();
}

} // namespace

std::string models_body(std::span<const actors::model_info> models) {
  std::string out;
  json_writer json(out);
  json.begin_object().field("object", "list").key("data").begin_array();
  for (const auto& model : models)
    add_model(json, model);
  json.end_array().end_object();
  return out;
}

std::string model_body(const actors::model_info& model) {
  std::string out;
  json_writer json(out);
  add_model(json, model);
  return out;
}

} // namespace twill::net
