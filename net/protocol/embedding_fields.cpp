#include "net/protocol/embedding_fields.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "config/base/units.hpp"
#include "net/protocol/sampling_fields.hpp"

namespace twill::net {
namespace {

/// The most bytes that the numbers of one reply may take; a reply is held in memory until it is
/// complete.
constexpr std::int64_t most_reply_bytes = 32 * mib;
/// Numbers per embedding to assume if the model's size is unknown because its files are not open.
constexpr std::int32_t assumed_size = 4096;

void read_pooling(fields& from, actors::request& to) {
  to.pooling = actors::pooling::last;
  const auto* given = from.find("pooling");
  if (given == nullptr || *given == value("last")) return;
  if (*given == value("mean"))
    to.pooling = actors::pooling::mean;
  else
    from.reject("pooling", "\"last\" or \"mean\"", *given);
}

bool is_empty(const any_prompt& input) {
  if (const auto* text = std::get_if<actors::text_prompt>(&input)) return text->text.empty();
  const auto* ids = std::get_if<actors::token_prompt>(&input);
  return ids != nullptr && ids->empty();
}

} // namespace

void read_pooled_request(fields& from, const codec_context& context, actors::request& to,
                         bool& add_special) {
  to.model = context.model.id;
  read_pooling(from, to);
  from.read("dimensions", to.dimensions, 1);
  // -1 stands for as much of the input as the model takes.
  const auto* most = from.find("truncate_prompt_tokens");
  if (most != nullptr && as_integer(*most) == -1)
    to.truncate_prompt_tokens = std::max(context.model.max_model_len, 1);
  else
    from.read("truncate_prompt_tokens", to.truncate_prompt_tokens, 1);
  read_queue_fields(from, to);
  from.read("add_special_tokens", add_special);
  bool stream = false;
  from.read("stream", stream);
  if (stream) from.reject("stream", "false or absent: the reply comes whole", value(true));
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 2> fixed = {
      {{"embed_dtype", "float32"}, {"truncation_side", "left"}}};
  for (const auto& [name, only] : fixed)
    if (const auto* v = from.find(name); v != nullptr && *v != value(std::string(only)))
      from.reject(name, '"' + std::string(only) + "\" or absent", *v);
  if (const auto* v = from.find("endianness");
      v != nullptr && *v != value("native") && *v != value("little"))
    from.reject("endianness", "\"native\", \"little\" or absent", *v);
}

void add_pooled_rows(field_rows& to) {
  constexpr std::array rows = {
      model_row,
      field_row{"pooling", R"("enum":["last","mean"])",
                "The hidden state of the last token (the default), or the mean over all."},
      field_row{"dimensions", R"("type":"integer","minimum":1)",
                "Must be the model's own size: nothing says that its vectors may be shortened."},
      field_row{"truncate_prompt_tokens", R"("type":"integer","minimum":-1)",
                "Only the last so many tokens of an input are read; -1: as many as fit."},
      field_row{"add_special_tokens", schema::boolean,
                "The model's first token goes before an input (the default)."},
      field_row{"stream", R"("const":false)", "The reply comes whole."},
      field_row{"embed_dtype", schema::any, R"("float32" or absent)", field_use::refused},
      field_row{"truncation_side", schema::any, R"("left" or absent)", field_use::refused},
      field_row{"endianness", schema::any, R"("native", "little" or absent)", field_use::refused}};
  add_rows(to, rows);
  add_queue_rows(to);
}

void add_pooled_request(fields& from, const std::string& field, any_prompt input,
                        const actors::request& asked, std::vector<actors::request>& to) {
  if (is_empty(input)) from.reject(field, "a text or token ids, not empty", value(""));
  to.push_back(asked);
  to.back().prompt = std::move(input);
  to.back().prompt_field = field;
}

std::vector<actors::request> read_pooled_inputs(fields& from, const std::string& field,
                                                const codec_context& context, bool add_special,
                                                const actors::request& asked) {
  auto inputs =
      read_prompts(from, field, add_special, context.model.vocab_size, max_inputs_per_call);
  std::vector<actors::request> requests;
  if (!from.ok()) return requests;
  const auto* list = from.find(field)->as_list();
  const bool listed = list != nullptr &&
                      (list->front().as_string() != nullptr || list->front().as_list() != nullptr);
  requests.reserve(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    add_pooled_request(from, listed ? field + "[" + std::to_string(i) + "]" : field,
                       std::move(inputs[i]), asked, requests);
  return requests;
}

void check_reply_bytes(fields& from, const std::string& field, const codec_context& context,
                       std::size_t inputs, double bytes_per_number) {
  const std::int32_t size =
      context.model.embedding_size > 0 ? context.model.embedding_size : assumed_size;
  const auto most =
      static_cast<std::size_t>(static_cast<double>(most_reply_bytes) / (size * bytes_per_number));
  if (inputs > std::max<std::size_t>(most, 1))
    from.reject(field,
                "at most " + std::to_string(most) + " inputs where each gives " +
                    std::to_string(size) + " numbers and the reply may take " +
                    format_bytes(most_reply_bytes),
                value(static_cast<std::int64_t>(inputs)));
}

} // namespace twill::net
