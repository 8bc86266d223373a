#include "net/protocol/tgi/generate.hpp"

#include <string>
#include <utility>

#include "net/protocol/json/fields.hpp"
#include "net/protocol/tgi/generate_parameters.hpp"

namespace twill::net {
namespace {

result<call> make_generation(const value& body, const codec_context& context, bool in_list,
                             bool stream) {
  fields from(body);
  generate_options options;
  options.stream = stream;
  options.in_list = in_list;
  if (in_list) from.read("stream", options.stream);
  std::string inputs;
  from.require("inputs");
  from.read("inputs", inputs);
  if (from.ok() && inputs.empty())
    from.reject("inputs", "a text that is not empty", *from.find("inputs"));
  actors::request asked;
  asked.model = context.model.id;
  generate_parameters parameters{asked, options};
  read_generate_parameters(from, context, parameters);
  if (!from.ok()) return fail(from.error());

  if (parameters.full_text) options.prefix = inputs;
  asked.prompt = actors::text_prompt{std::move(inputs)};
  call generation;
  generation.stream = options.stream;
  generation.requests.push_back(std::move(asked));
  generation.encoder = std::make_unique<generate_reply>(std::move(options));
  return generation;
}

} // namespace

field_rows generate_rows() {
  return {model_row,
          {"inputs", schema::string, "The prompt.", field_use::honoured, true},
          {"parameters", schema::object,
           "How the output is made. Where it is absent, tokens are drawn.", field_use::honoured,
           false, generate_parameter_rows}};
}

field_rows compat_generate_rows() {
  auto rows = generate_rows();
  rows.push_back({"stream", schema::boolean, "The output comes as server-sent events."});
  return rows;
}

result<call> parse_generate(const value& body, const codec_context& context) {
  return make_generation(body, context, false, false);
}

result<call> parse_generate_stream(const value& body, const codec_context& context) {
  return make_generation(body, context, false, true);
}

result<call> parse_compat_generate(const value& body, const codec_context& context) {
  return make_generation(body, context, true, false);
}

} // namespace twill::net
