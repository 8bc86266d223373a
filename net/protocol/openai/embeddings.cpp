#include "net/protocol/openai/embeddings.hpp"

#include <utility>

#include "net/protocol/chat_fields.hpp"
#include "net/protocol/embedding_fields.hpp"
#include "net/protocol/foreign_fields.hpp"
#include "net/protocol/json/json_writer.hpp"
#include "net/protocol/vectors.hpp"

namespace twill::net {
namespace {

void read_encoding(fields& from, embeddings_form& to) {
  const auto* given = from.find("encoding_format");
  if (given == nullptr || *given == value("float")) return;
  if (*given == value("base64"))
    to.base64 = true;
  else
    from.reject("encoding_format", "\"float\" or \"base64\"", *given);
}

/// Reads a body that has `messages` instead of `input`, as vLLM accepts it. The only input is the
/// chat as formatted by the model's template.
std::vector<actors::request> read_chat_input(fields& from, const actors::request& asked) {
  if (const auto* both = from.find("input"))
    from.reject("input", "absent beside `messages`", *both);
  actors::chat_prompt chat;
  chat.add_generation_prompt = false;
  read_messages(from, chat);
  std::vector<actors::request> requests;
  add_pooled_request(from, "messages", std::move(chat), asked, requests);
  return requests;
}

} // namespace

field_rows embeddings_rows() {
  field_rows rows{{"input", R"("type":["string","array"])",
                   "A text, token ids, or a list of either: an embedding for each."},
                  {"messages", R"("type":"array","items":{"type":"object"})",
                   "In place of `input`: a chat, as the model's template writes it."},
                  {"add_generation_prompt", schema::boolean,
                   "With `messages`: the template begins an answer; the default is false."},
                  {"encoding_format", R"("enum":["float","base64"])",
                   "Numbers, or their 32-bit little-endian bytes in base64."},
                  {"normalize", schema::boolean, "The vectors have length 1 (the default)."},
                  {"use_activation", schema::boolean, "vLLM's newer name of `normalize`."},
                  {"user", schema::any, "OpenAI", field_use::no_effect}};
  add_pooled_rows(rows);
  add_message_rows(rows);
  return rows;
}

result<call> parse_embeddings(const value& body, const codec_context& context) {
  fields from(body);
  note_ignored(from);
  actors::request asked;
  bool add_special = true;
  read_pooled_request(from, context, asked, add_special);
  embeddings_form form;
  form.model = context.model.id;
  read_encoding(from, form);
  from.read("normalize", form.normalize);
  from.read("use_activation", form.normalize); // the newer name of the field in vLLM
  call pooled;
  const bool chat = from.find("messages") != nullptr;
  if (!chat) reject_continuation(from);
  pooled.requests = chat ? read_chat_input(from, asked)
                         : read_pooled_inputs(from, "input", context, add_special, asked);
  check_reply_bytes(from, "input", context, pooled.requests.size(),
                    form.base64 ? base64_bytes_per_number : text_bytes_per_number);
  if (!from.ok()) return fail(from.error());
  pooled.encoder = std::make_unique<embeddings_reply>(std::move(form));
  return pooled;
}

void embeddings_reply::on_event(std::size_t request, actors::event&& ev, std::string& out) {
  if (ev.embedding == nullptr) return;
  prompt_tokens_ += ev.use.prompt_tokens;
  vectors_.add(request, std::move(ev.embedding),
               [&](std::size_t index, const auto& values) { add(index, values, out); });
}

void embeddings_reply::add(std::size_t index, const std::vector<float>& values,
                           std::string& out) const {
  out += index == 0 ? R"({"object":"list","data":[)" : ",";
  const std::vector<float> shown = form_.normalize ? unit_vector(values) : values;
  json_writer json(out);
  json.begin_object().field("object", "embedding").field("index", index).key("embedding");
  if (form_.base64) {
    json.raw("\"");
    append_base64(out, shown);
    out += '"';
  } else {
    json.begin_array();
    for (const float x : shown)
      json.add(x);
    json.end_array();
  }
  json.end_object();
}

void embeddings_reply::on_end(std::string& out) {
  out += R"(],"model":)";
  append_json_string(out, form_.model);
  const std::string tokens = std::to_string(prompt_tokens_);
  out += R"(,"usage":{"prompt_tokens":)" + tokens + R"(,"total_tokens":)" + tokens + "}}";
}

} // namespace twill::net
