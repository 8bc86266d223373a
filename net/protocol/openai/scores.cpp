#include "net/protocol/openai/scores.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "net/protocol/embedding_fields.hpp"
#include "net/protocol/json/json_writer.hpp"
#include "net/protocol/vectors.hpp"

namespace twill::net {
namespace {

/// Bytes per number in memory: the numbers are kept until the end, and not written to the reply.
constexpr double kept_bytes_per_number = sizeof(float);

/// Returns the text of a document, which is a string or an object with a string `text`; null for
/// anything else.
const std::string* text_of_document(const value& document) {
  if (const auto* text = document.as_string()) return text;
  const auto* text = document.find("text");
  return text == nullptr ? nullptr : text->as_string();
}

void read_documents(fields& from, const actors::request& asked, bool add_special,
                    std::vector<actors::request>& requests, std::vector<std::string>& texts) {
  from.require("documents");
  if (!from.ok()) return;
  const auto& given = *from.find("documents");
  const auto* list = given.as_list();
  if (list == nullptr || list->empty() || list->size() > max_inputs_per_call)
    return from.reject("documents",
                       "a list of 1 to " + std::to_string(max_inputs_per_call) + " documents",
                       list == nullptr ? given : value(static_cast<std::int64_t>(list->size())));
  for (std::size_t i = 0; i < list->size() && from.ok(); ++i) {
    const std::string name = "documents[" + std::to_string(i) + "]";
    const auto* text = text_of_document((*list)[i]);
    if (text == nullptr)
      return from.reject(name, "a string or an object with a string `text`", (*list)[i]);
    texts.push_back(*text);
    add_pooled_request(from, name, actors::text_prompt{*text, add_special}, asked, requests);
  }
}

void add_usage_of_prompts(json_writer& json, std::int64_t prompt_tokens) {
  json.key("usage").begin_object();
  json.field("prompt_tokens", prompt_tokens).field("total_tokens", prompt_tokens).end_object();
}

} // namespace

field_rows score_rows() {
  field_rows rows{
      {"text_1", R"("type":["string","array"])", "A text or several.", field_use::honoured, true},
      {"text_2", R"("type":["string","array"])",
       "The texts that it is compared with, or pair by pair.", field_use::honoured, true}};
  add_pooled_rows(rows);
  return rows;
}

field_rows rerank_rows() {
  constexpr std::string_view whole = "absent: a document is compared as a whole, by its text";
  field_rows rows{
      {"query", schema::string, "What the documents are compared with.", field_use::honoured, true},
      {"documents", R"("type":"array","minItems":1)", "Texts, or objects with a `text`.",
       field_use::honoured, true},
      {"top_n", R"("type":"integer","minimum":0)", "The most results; 0 gives all."},
      {"return_documents", schema::boolean, "The results have the texts (the default)."},
      {"max_tokens_per_doc", R"("type":"integer","minimum":1)",
       "Only the first so many tokens of a document are read."},
      {"max_chunks_per_doc", schema::any, whole, field_use::refused},
      {"rank_fields", schema::any, whole, field_use::refused}};
  add_pooled_rows(rows);
  return rows;
}

result<call> parse_score(const value& body, const codec_context& context) {
  fields from(body);
  actors::request asked;
  bool add_special = true;
  read_pooled_request(from, context, asked, add_special);
  call compared;
  auto& requests = compared.requests;
  requests = read_pooled_inputs(from, "text_1", context, add_special, asked);
  const std::size_t n_first = requests.size();
  auto second = read_pooled_inputs(from, "text_2", context, add_special, asked);
  const std::size_t n_second = second.size();
  if (n_first != 1 && n_first != n_second)
    from.reject("text_2", "as many texts as `text_1` where that is a list of several",
                value(static_cast<std::int64_t>(n_second)));
  std::move(second.begin(), second.end(), std::back_inserter(requests));
  check_reply_bytes(from, "text_2", context, requests.size(), kept_bytes_per_number);
  if (!from.ok()) return fail(from.error());
  compared.encoder =
      std::make_unique<score_reply>(make_identity("score-", context), n_first, n_second);
  return compared;
}

result<call> parse_rerank(const value& body, const codec_context& context) {
  fields from(body);
  actors::request asked;
  bool add_special = true;
  read_pooled_request(from, context, asked, add_special);
  call compared;
  std::string query;
  from.require("query");
  from.read("query", query);
  add_pooled_request(from, "query", actors::text_prompt{query, add_special}, asked,
                     compared.requests);
  actors::request of_document = asked;
  if (from.find("max_tokens_per_doc") != nullptr) { // the name in Cohere's API
    from.read("max_tokens_per_doc", of_document.truncate_prompt_tokens, 1);
    of_document.truncate_to_first = true;
  }
  rerank_form form;
  read_documents(from, of_document, add_special, compared.requests, form.documents);
  const std::size_t n_documents = form.documents.size();
  std::int32_t most = 0;
  from.read("top_n", most, 0);
  form.most = most == 0 ? n_documents : std::min(static_cast<std::size_t>(most), n_documents);
  bool with_documents = true;
  from.read("return_documents", with_documents);
  if (!with_documents) form.documents.clear();
  for (const auto* name : {"max_chunks_per_doc", "rank_fields"})
    if (const auto* v = from.find(name))
      from.reject(name, "absent: a document is compared as a whole, by its text", *v);
  check_reply_bytes(from, "documents", context, compared.requests.size(), kept_bytes_per_number);
  if (!from.ok()) return fail(from.error());
  compared.encoder = std::make_unique<rerank_reply>(make_identity("rerank-", context), n_documents,
                                                    std::move(form));
  return compared;
}

void compared_reply::on_event(std::size_t request, actors::event&& ev, std::string&) {
  if (ev.embedding == nullptr) return;
  prompt_tokens_ += ev.use.prompt_tokens;
  vectors_[request] = std::move(ev.embedding);
}

double compared_reply::cosine_of(std::size_t a, std::size_t b) const {
  return cosine(*vectors_[a], *vectors_[b]);
}

void score_reply::on_end(std::string& out) {
  json_writer json(out);
  json.begin_object().field("id", identity().id).field("object", "list");
  json.field("created", identity().created_unix_s).field("model", identity().model);
  json.key("data").begin_array();
  for (std::size_t i = 0; i < n_second_; ++i)
    json.begin_object()
        .field("index", i)
        .field("object", "score")
        .field("score", cosine_of(n_first_ == 1 ? 0 : i, n_first_ + i))
        .end_object();
  json.end_array();
  add_usage_of_prompts(json, prompt_tokens());
  json.end_object();
}

void rerank_reply::on_end(std::string& out) {
  std::vector<std::pair<double, std::size_t>> ranked;
  for (std::size_t i = 0; i < n_documents_; ++i)
    ranked.emplace_back(cosine_of(0, 1 + i), i);
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  ranked.resize(form_.most);
  json_writer json(out);
  json.begin_object().field("id", identity().id).field("model", identity().model);
  add_usage_of_prompts(json, prompt_tokens());
  json.key("results").begin_array();
  for (const auto& [score, index] : ranked) {
    json.begin_object().field("index", index);
    if (!form_.documents.empty())
      json.key("document").begin_object().field("text", form_.documents[index]).end_object();
    json.field("relevance_score", score).end_object();
  }
  json.end_array().end_object();
}

} // namespace twill::net
