#include "net/http/operations.hpp"

#include <array>

#include "net/batch/batch_service.hpp"
#include "net/http/ollama_routes.hpp"
#include "net/protocol/anthropic/messages.hpp"
#include "net/protocol/llamacpp/completion.hpp"
#include "net/protocol/llamacpp/props.hpp"
#include "net/protocol/ollama/chat.hpp"
#include "net/protocol/ollama/embed.hpp"
#include "net/protocol/ollama/generate.hpp"
#include "net/protocol/openai/chat.hpp"
#include "net/protocol/openai/completions.hpp"
#include "net/protocol/openai/embeddings.hpp"
#include "net/protocol/openai/responses.hpp"
#include "net/protocol/openai/scores.hpp"
#include "net/protocol/openai/tokenize.hpp"
#include "net/protocol/tgi/generate.hpp"

namespace twill::net {
namespace {

constexpr auto get = http_method::get;
constexpr auto post = http_method::post;
constexpr auto del = http_method::del;
using form = reply_form;

namespace section {
constexpr std::string_view generation = "Generation";
constexpr std::string_view ollama = "Ollama's API";
constexpr std::string_view tgi = "TGI's API, and KServe's health";
constexpr std::string_view llamacpp = "llama.cpp's API";
constexpr std::string_view stored = "Stored answers";
constexpr std::string_view models = "Models and tokens";
constexpr std::string_view batches = "Files and batches";
constexpr std::string_view daemon = "The daemon";
constexpr std::string_view routers = "For routers";
constexpr std::string_view pages = "Pages";
} // namespace section

constexpr std::array list_query = {
    field_row{"limit", R"("type":"integer","minimum":1)", "The most entries of the page."},
    field_row{"order", R"("enum":["asc","desc"])", "The oldest or the newest first."},
    field_row{"after", schema::string, "The id of the entry that the page follows."}};
constexpr std::array file_query = {
    list_query[0], list_query[1], list_query[2],
    field_row{"purpose", schema::string, "Only files of this purpose."}};
constexpr std::array model_query = {model_row};
constexpr std::array slots_query = {
    model_row, field_row{"fail_on_no_slot", R"("enum":["0","1"])",
                         "With 1 an error (503) while as many requests run as may."}};
constexpr std::array stored_query = {
    field_row{"stream", schema::boolean, "Its events, those that are still to come included."},
    field_row{"starting_after", R"("type":"integer","minimum":0)",
              "With `stream`: only the events beyond this number."}};

constexpr std::array operation_table = {
    // clang-format off
    operation{post, "/v1/chat/completions", section::generation, "A chat, as OpenAI's.", form::json_or_events, chat_rows},
    operation{post, "/v1/completions", section::generation, "Text or token ids in, text out, as OpenAI's.", form::json_or_events, completions_rows},
    operation{post, "/v1/responses", section::generation, "A response, as OpenAI's.", form::json_or_events, responses_rows},
    operation{post, "/v1/messages", section::generation, "A message, as Anthropic's.", form::json_or_events, message_rows},
    operation{post, "/v1/messages/count_tokens", section::generation, "How many tokens such a request has.", form::json, count_rows},
    operation{get, "/v1/responses", section::generation, "Responses over WebSocket.", form::websocket},
    operation{get, "/v1/stream", section::generation, "twill's own WebSocket dialect: token ids, flow control, cancel.", form::websocket},
    operation{post, "/v1/embeddings", section::generation, "Embeddings of a decoder model, as OpenAI's.", form::json, embeddings_rows},
    operation{post, "/v1/score", section::generation, "How near texts are to each other, as vLLM's.", form::json, score_rows},
    operation{post, "/score", section::generation, "How near texts are to each other: `/v1/score`.", form::json, score_rows},
    operation{post, "/v1/rerank", section::generation, "Documents in the order of a query, as Jina's and Cohere's.", form::json, rerank_rows},
    operation{post, "/v2/rerank", section::generation, "Documents in the order of a query: `/v1/rerank`.", form::json, rerank_rows},
    operation{post, "/rerank", section::generation, "Documents in the order of a query: `/v1/rerank`.", form::json, rerank_rows},

    operation{post, "/api/chat", section::ollama, "A chat; lines of JSON unless `stream` is false.", form::json_or_lines, ollama_chat_rows},
    operation{post, "/api/generate", section::ollama, "A prompt; lines of JSON unless `stream` is false.", form::json_or_lines, ollama_generate_rows},
    operation{post, "/api/embed", section::ollama, "Embeddings of length 1.", form::json, ollama::embed_rows},
    operation{post, "/api/embeddings", section::ollama, "One embedding, as the model has it.", form::json, ollama::embeddings_rows},
    operation{get, "/api/tags", section::ollama, "The models that the key may use."},
    operation{get, "/api/ps", section::ollama, "The models that are in memory."},
    operation{post, "/api/show", section::ollama, "A model that the key may use.", form::json, ollama_show_rows},
    operation{post, "/api/pull", section::ollama, "A model that is served is here already; no other is fetched.", form::json_or_lines, ollama_pull_rows},
    operation{get, "/api/version", section::ollama, "The version of Ollama whose API this is."},
    operation{post, "/api/create", section::ollama, "Refused: models come from the configuration.", form::refused},
    operation{post, "/api/copy", section::ollama, "Refused: models come from the configuration.", form::refused},
    operation{post, "/api/push", section::ollama, "Refused: models come from the configuration.", form::refused},
    operation{del, "/api/delete", section::ollama, "Refused: models come from the configuration.", form::refused},
    operation{get, "/api/blobs/*", section::ollama, "Refused: models come from the configuration.", form::refused},
    operation{post, "/api/blobs/*", section::ollama, "Refused: models come from the configuration.", form::refused},

    operation{post, "/generate", section::tgi, "A prompt, as TGI's.", form::json, generate_rows},
    operation{post, "/generate_stream", section::tgi, "A prompt, as TGI's; server-sent events.", form::events, generate_rows},
    operation{post, "/", section::tgi, "A prompt, as TGI's: events with `stream`, else a list of one.", form::json_or_events, compat_generate_rows},
    operation{get, "/info", section::tgi, "The model and the limits."},
    operation{get, "/v2", section::tgi, "The server, as the Open Inference Protocol has it."},
    operation{get, "/v2/health/live", section::tgi, "Whether the process answers."},
    operation{get, "/v2/health/ready", section::tgi, "Whether requests are served."},
    operation{get, "/v2/models/**", section::tgi, "One of the models."},
    operation{get, "/v2/models/**/ready", section::tgi, "Whether a model is served."},

    operation{post, "/completion", section::llamacpp, "A prompt, as llama.cpp's server takes it.", form::json_or_events, completion_rows},
    operation{post, "/completions", section::llamacpp, "A prompt, as llama.cpp's server takes it: `/completion`.", form::json_or_events, completion_rows},
    operation{post, "/apply-template", section::llamacpp, "The text that a chat becomes.", form::json, apply_template_rows},
    operation{get, "/props", section::llamacpp, "Settings, limits, the chat template.", form::json, nullptr, model_query},
    operation{get, "/slots", section::llamacpp, "How many requests run, in one row for each that could.", form::json, nullptr, slots_query},

    operation{get, "/v1/responses/*", section::stored, "A stored response.", form::json_or_events, nullptr, stored_query},
    operation{del, "/v1/responses/*", section::stored, "Deletes a stored response; one that runs is ended."},
    operation{post, "/v1/responses/*/cancel", section::stored, "Ends a response that runs."},
    operation{get, "/v1/responses/*/input_items", section::stored, "The items of a response's input.", form::json, nullptr, list_query},
    operation{get, "/v1/chat/completions/*", section::stored, "A stored chat completion.", form::json_or_events, nullptr, stored_query},
    operation{del, "/v1/chat/completions/*", section::stored, "Deletes a stored chat completion; one that runs is ended."},
    operation{post, "/v1/chat/completions/*/cancel", section::stored, "Ends a stored chat completion that runs."},
    operation{get, "/v1/completions/*", section::stored, "A stored completion.", form::json_or_events, nullptr, stored_query},
    operation{del, "/v1/completions/*", section::stored, "Deletes a stored completion; one that runs is ended."},
    operation{post, "/v1/completions/*/cancel", section::stored, "Ends a stored completion that runs."},
    operation{del, "/v1/stream/*", section::stored, "Deletes a stored stream of the WebSocket dialect."},

    operation{get, "/v1/models", section::models, "The models that the key may use."},
    operation{get, "/v1/models/**", section::models, "One of the models."},
    operation{post, "/tokenize", section::models, "Text or messages to token ids, in the bodies of vLLM, llama.cpp and TGI.", form::json, tokenize_rows},
    operation{post, "/v1/tokenize", section::models, "Text or messages to token ids: `/tokenize`.", form::json, tokenize_rows},
    operation{post, "/detokenize", section::models, "Token ids to text.", form::json, detokenize_rows},
    operation{post, "/v1/detokenize", section::models, "Token ids to text: `/detokenize`.", form::json, detokenize_rows},
    operation{get, "/tokenizer_info", section::models, "Special tokens, limits, the chat template."},
    operation{post, "/v1/chat/completions/render", section::models, "The token ids that a chat becomes.", form::json, chat_rows},
    operation{post, "/v1/completions/render", section::models, "The token ids that prompts become.", form::json, completions_rows},

    operation{post, "/v1/files", section::batches, "Uploads the lines of a batch.", form::json, nullptr, {}, true},
    operation{get, "/v1/files", section::batches, "What was uploaded, and what batches wrote.", form::json, nullptr, file_query},
    operation{get, "/v1/files/*", section::batches, "One of the files."},
    operation{del, "/v1/files/*", section::batches, "Deletes a file."},
    operation{get, "/v1/files/*/content", section::batches, "What a file holds.", form::bytes},
    operation{post, "/v1/batches", section::batches, "Has many requests answered when there is room.", form::json, batch_rows},
    operation{get, "/v1/batches", section::batches, "All batches.", form::json, nullptr, list_query},
    operation{get, "/v1/batches/*", section::batches, "One of the batches."},
    operation{post, "/v1/batches/*/cancel", section::batches, "Ends a batch; what is done stays."},

    operation{get, "/health", section::daemon, "Whether the process answers."},
    operation{get, "/ready", section::daemon, "Whether requests are served."},
    operation{get, "/ping", section::daemon, "Whether requests are served, as SageMaker asks."},
    operation{get, "/metrics", section::daemon, "Figures for Prometheus.", form::text},
    operation{get, "/version", section::daemon, "The version, and `server.name`."},

    operation{get, "/load", section::routers, "How many requests run or wait."},
    operation{get, "/get_load", section::routers, "How many requests run or wait, as SGLang's routers read it."},
    operation{get, "/is_sleeping", section::routers, "Whether no model is in memory."},
    operation{get, "/kv_event_sources", section::routers, "Where KV events are published."},
    operation{get, "/server_info", section::routers, "What the daemon serves."},
    operation{get, "/get_server_info", section::routers, "What the daemon serves: `/server_info`."},
    operation{get, "/model_info", section::routers, "The first model."},
    operation{get, "/get_model_info", section::routers, "The first model: `/model_info`."},

    operation{get, "/", section::pages, "The chat page.", form::html},
    operation{get, "/page/*", section::pages, "What the pages load, and the guides.", form::bytes},
    operation{get, "/routes", section::pages, "The list of routes and guides.", form::html},
    operation{get, "/docs", section::pages, "Each route with the fields of its body.", form::html},
    operation{get, "/openapi.json", section::pages, "All routes for programs, as OpenAPI 3.1."},
    // clang-format on
};

} // namespace

std::span<const operation> operations() {
  return operation_table;
}

std::string path_with_names(std::string_view path) {
  std::string named;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] != '*') {
      named += path[i];
      continue;
    }
    const bool many = path.substr(i).starts_with("**");
    named += many ? "{name}" : path.starts_with("/page/") ? "{file}" : "{id}";
    if (many) ++i;
  }
  return named;
}

} // namespace twill::net
