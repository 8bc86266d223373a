#include "net/protocol/llamacpp/props.hpp"

#include "net/protocol/chat_fields.hpp"
#include "net/protocol/json/fields.hpp"
#include "net/protocol/json/json_writer.hpp"
#include "net/protocol/llamacpp/completion_sampling.hpp"
#include "net/protocol/llamacpp/completion_settings.hpp"

namespace twill::net {
namespace {

void add_special_text(json_writer& json, std::string_view name, std::int32_t id,
                      const actors::model_info& model, const actors::engine_port& engine) {
  json.key(name);
  const auto pieces =
      id < 0 ? actors::result<std::vector<actors::token_piece>>(std::vector<actors::token_piece>{})
             : engine.pieces(model.id, {id});
  json.add(pieces.ok() && !pieces.value().empty() ? pieces.value().front().bytes : std::string());
}

bool has_no_weights_now(const actors::model_info& model) {
  return model.state == actors::model_state::asleep || model.state == actors::model_state::unloaded;
}

} // namespace

result<std::string> props_body(const actors::model_info& model, const actors::engine_port& engine,
                               std::int32_t slots) {
  const auto described = engine.describe_tokenizer(model.id);
  if (!described.ok()) return fail(from_engine(described.code(), described.detail()));
  const auto& text = described.value();
  const auto defaults = llamacpp_defaults(model.default_sampling);
  std::string out;
  json_writer json(out);
  json.begin_object().key("default_generation_settings").begin_object();
  json.field("id", 0)
      .field("id_task", -1)
      .field("n_ctx", model.max_model_len)
      .field("speculative", false)
      .field("is_processing", false);
  json.key("params");
  add_completion_settings(json, {.sampling = defaults});
  json.end_object();
  json.field("total_slots", slots).field("model_alias", model.id).field("model_path", model.id);
  json.key("modalities").begin_object().field("vision", false).field("audio", false).end_object();
  json.field("chat_template", text.chat_template);
  add_special_text(json, "bos_token", text.bos_id, model, engine);
  add_special_text(json, "eos_token", text.eos_id, model, engine);
  json.field("build_info", "twill " TWILL_VERSION)
      .field("is_sleeping", has_no_weights_now(model))
      .end_object();
  return out;
}

std::string slots_body(const actors::model_info& model, std::int32_t slots, std::int32_t running) {
  std::string out;
  json_writer json(out);
  json.begin_array();
  for (std::int32_t i = 0; i < slots; ++i)
    json.begin_object()
        .field("id", i)
        .field("n_ctx", model.max_model_len)
        .field("speculative", false)
        .field("is_processing", i < running)
        .end_object();
  json.end_array();
  return out;
}

field_rows apply_template_rows() {
  field_rows rows{model_row};
  add_chat_prompt_rows(rows);
  return rows;
}

result<std::string> apply_template_body(const value& body, const codec_context& context) {
  fields from(body);
  actors::chat_prompt chat;
  read_chat_prompt(from, chat);
  if (!from.ok()) return fail(from.error());
  const auto written = context.engine.render_chat(context.model.id, chat);
  if (!written.ok()) return fail(from_engine(written.code(), written.detail()));
  std::string out;
  json_writer(out).begin_object().field("prompt", written.value()).end_object();
  return out;
}

} // namespace twill::net
