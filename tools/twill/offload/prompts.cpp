#include "tools/twill/offload/prompts.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <fstream>

#include "tools/common/http_client.hpp"

namespace twill::tools {
namespace {

namespace json = boost::json;

std::vector<std::int32_t> ids_of(const json::array& list, const models::tokenizer& text,
                                 const std::string& where) {
  std::vector<std::int32_t> ids;
  for (const json::value& v : list) {
    const std::int64_t* id = v.if_int64();
    if (id == nullptr || *id < 0 || *id >= text.vocab_size())
      throw client_error(where + "a token id must be a whole number below " +
                         std::to_string(text.vocab_size()) + ", got " + json::serialize(v));
    ids.push_back(static_cast<std::int32_t>(*id));
  }
  return ids;
}

models::offload::job_prompt read_prompt(const json::value& line, const models::tokenizer& text,
                                        std::int32_t max_new, const std::string& where) {
  const auto* object = line.if_object();
  if (object == nullptr) throw client_error(where + "must be an object");
  const json::value* prompt = object->if_contains("prompt");
  if (prompt == nullptr) prompt = object->if_contains("token_ids");
  if (prompt == nullptr) throw client_error(where + "`prompt` must be there");
  models::offload::job_prompt out;
  if (const auto* list = prompt->if_array()) {
    out.ids = ids_of(*list, text, where);
  } else if (const auto* words = prompt->if_string()) {
    auto ids = text.encode({words->data(), words->size()}, {true, false});
    if (!ids.ok()) throw client_error(where + ids.detail());
    out.ids = ids.value();
  } else {
    throw client_error(where + "`prompt` must be text or a list of token ids");
  }
  if (out.ids.empty()) throw client_error(where + "`prompt` must have at least one token");
  out.max_new = max_new;
  if (const json::value* most = object->if_contains("max_tokens")) {
    const std::int64_t* n = most->if_int64();
    if (n == nullptr || *n < 1 || *n > 1'000'000)
      throw client_error(where + "`max_tokens` must be 1 to 1000000, got " +
                         json::serialize(*most));
    out.max_new = static_cast<std::int32_t>(*n);
  }
  return out;
}

const char* reason_of(models::offload::job_finish finish) {
  switch (finish) {
  case models::offload::job_finish::length:
    return "length";
  case models::offload::job_finish::stop:
    return "stop";
  case models::offload::job_finish::interrupted:
    break;
  }
  return "interrupted";
}

} // namespace

std::vector<models::offload::job_prompt>
read_prompts(const std::string& path, const models::tokenizer& text, std::int32_t max_new) {
  std::ifstream in(path);
  if (!in) throw client_error("`--prompts` must be a file that can be read, got " + path);
  std::vector<models::offload::job_prompt> prompts;
  std::int64_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string where = path + ":" + std::to_string(number) + ": ";
    boost::system::error_code bad;
    const auto parsed = json::parse(line, bad);
    if (bad) throw client_error(where + "must be JSON: " + bad.message());
    prompts.push_back(read_prompt(parsed, text, max_new, where));
  }
  if (prompts.empty()) throw client_error("`--prompts` must hold at least one prompt, got " + path);
  return prompts;
}

std::vector<models::offload::job_prompt> make_prompts(const models::tokenizer& text, std::int64_t n,
                                                      std::int32_t length, std::int32_t max_new) {
  auto words = text.encode("Paris is the capital city of", {});
  std::vector<std::int32_t> sentence = words.ok() ? words.value() : std::vector<std::int32_t>();
  if (sentence.empty()) sentence = {0};
  std::vector<models::offload::job_prompt> prompts;
  for (std::int64_t p = 0; p < n; ++p) {
    models::offload::job_prompt prompt;
    prompt.max_new = max_new;
    for (std::int32_t i = 0; i < length; ++i)
      prompt.ids.push_back(sentence[static_cast<std::size_t>(p + i) % sentence.size()]);
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

void write_outputs(const std::string& path, const models::tokenizer& text,
                   const std::vector<models::offload::job_output>& outputs) {
  std::ofstream out(path);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    json::array ids(outputs[i].ids.begin(), outputs[i].ids.end());
    out << json::serialize(json::object{{"index", i},
                                        {"text", text.decode(outputs[i].ids, true)},
                                        {"token_ids", std::move(ids)},
                                        {"finish_reason", reason_of(outputs[i].finish)}})
        << '\n';
  }
  out.flush();
  if (!out) throw client_error("`--output` must be a file that can be written, got " + path);
}

} // namespace twill::tools
