#include "net/protocol/ollama/embed.hpp"

#include <utility>

#include "net/protocol/embedding_fields.hpp"
#include "net/protocol/foreign_fields.hpp"
#include "net/protocol/json/json_writer.hpp"
#include "net/protocol/vectors.hpp"

namespace twill::net::ollama {
namespace {

std::string name_given(const fields& from, const codec_context& context) {
  const auto* name = from.find("model");
  return name != nullptr && name->as_string() != nullptr && !name->as_string()->empty()
             ? *name->as_string()
             : context.model.id;
}

/// Reads `truncate`. As in Ollama, an input that is too long is cut to its first tokens.
void read_truncation(fields& from, const codec_context& context, actors::request& to) {
  bool truncate = true;
  from.read("truncate", truncate);
  if (!truncate || to.truncate_prompt_tokens > 0) return;
  to.truncate_prompt_tokens = context.model.max_model_len;
  to.truncate_to_first = true;
}

result<call> read_call(fields& from, const std::string& field, const codec_context& context) {
  note_ignored(from);
  actors::request asked;
  bool add_special = true;
  read_pooled_request(from, context, asked, add_special);
  read_truncation(from, context, asked);
  call pooled;
  pooled.requests = read_pooled_inputs(from, field, context, add_special, asked);
  check_reply_bytes(from, field, context, pooled.requests.size(), text_bytes_per_number);
  if (!from.ok()) return fail(from.error());
  return pooled;
}

void add_numbers(json_writer& json, const std::vector<float>& numbers) {
  json.begin_array();
  for (const float x : numbers)
    json.add(x);
  json.end_array();
}

} // namespace

namespace {

void add_embed_rows(field_rows& to) {
  to.push_back({"truncate", schema::boolean,
                "The first tokens of an input that is too long are read (the default)."});
  to.push_back({"options", schema::object, "Ollama", field_use::no_effect});
  to.push_back({"keep_alive", R"("type":["number","string"])", "Ollama", field_use::no_effect});
  add_pooled_rows(to);
}

} // namespace

field_rows embed_rows() {
  field_rows rows{
      {"input", R"("type":["string","array"])", "A text or several.", field_use::honoured, true}};
  add_embed_rows(rows);
  return rows;
}

field_rows embeddings_rows() {
  field_rows rows{{"prompt", schema::string, "A text.", field_use::honoured, true}};
  add_embed_rows(rows);
  return rows;
}

result<call> parse_embed(const value& body, const codec_context& context) {
  fields from(body);
  auto pooled = read_call(from, "input", context);
  if (pooled.ok())
    pooled.value().encoder = std::make_unique<embed_reply>(name_given(from, context));
  return pooled;
}

result<call> parse_embeddings(const value& body, const codec_context& context) {
  fields from(body);
  if (const auto* prompt = from.find("prompt"); prompt != nullptr && prompt->as_string() == nullptr)
    from.reject("prompt", "a string", *prompt);
  auto pooled = read_call(from, "prompt", context);
  if (pooled.ok()) pooled.value().encoder = std::make_unique<embedding_reply>();
  return pooled;
}

void embed_reply::on_event(std::size_t request, actors::event&& ev, std::string& out) {
  if (ev.embedding == nullptr) return;
  prompt_tokens_ += ev.use.prompt_tokens;
  vectors_.add(request, std::move(ev.embedding), [&](std::size_t index, const auto& values) {
    if (index == 0) {
      out += R"({"model":)";
      append_json_string(out, model_);
      out += R"(,"embeddings":[)";
    } else {
      out += ',';
    }
    json_writer json(out);
    add_numbers(json, unit_vector(values));
  });
}

void embed_reply::on_end(std::string& out) {
  const auto took = std::chrono::steady_clock::now() - began_;
  out += R"(],"total_duration":)";
  out += std::to_string(std::chrono::nanoseconds(took).count());
  out += R"(,"load_duration":0,"prompt_eval_count":)";
  out += std::to_string(prompt_tokens_) + "}";
}

void embedding_reply::on_event(std::size_t, actors::event&& ev, std::string& out) {
  if (ev.embedding == nullptr) return;
  json_writer json(out);
  json.begin_object().key("embedding");
  add_numbers(json, *ev.embedding);
  json.end_object();
}

} // namespace twill::net::ollama
