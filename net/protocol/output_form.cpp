#include "net/protocol/output_form.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "net/protocol/json/json_parse.hpp"
#include "net/protocol/json/json_writer.hpp"
#include "net/protocol/json/members.hpp"

namespace twill::net {
namespace {

using spec = config::grammar_spec;

class form_reader {
public:
  form_reader(fields& from, actors::request& to)
      : from_(from), to_(to.grammar), field_(to.grammar_field) {}

  void response_format(const std::string& name, const value& given) {
    if (!is_object(name, given)) return;
    const std::string type = text_of(member(given, "type"));
    if (type == "text") return only(name, given, {"type"});
    if (type == "json_object") {
      only(name, given, {"type", "schema"});
      if (const auto* own = member(given, "schema")) return schema(name + ".schema", *own, false);
      return put(name, given, {.kind = config::grammar_kind::json_object});
    }
    if (type != "json_schema") return bad_type(name, given);
    only(name, given, {"type", "json_schema"});
    const auto* nested = member(given, "json_schema");
    if (nested == nullptr) return missing(name + ".json_schema");
    named_schema(name + ".json_schema", *nested);
  }

  /// Reads `text.format` of the Responses API, which has the members of `json_schema` beside
  /// `type`.
  void text_format(const std::string& name, const value& given) {
    if (!is_object(name, given)) return;
    const std::string type = text_of(member(given, "type"));
    if (type == "text") return only(name, given, {"type"});
    if (type == "json_object") {
      only(name, given, {"type"});
      return put(name, given, {.kind = config::grammar_kind::json_object});
    }
    if (type != "json_schema") return bad_type(name, given);
    named_schema(name, given);
  }

  /// Reads Anthropic's `format`, which is a JSON Schema or absent.
  void message_format(const std::string& name, const value& given) {
    if (!is_object(name, given)) return;
    only(name, given, {"type", "schema"});
    const auto* type = member(given, "type");
    if (type == nullptr || *type != value("json_schema"))
      return from_.reject(name + ".type", R"("json_schema")", type == nullptr ? value() : *type);
    const auto* own = member(given, "schema");
    if (own == nullptr) return missing(name + ".schema");
    if (!is_object(name + ".schema", *own)) return;
    schema(name + ".schema", *own, true);
  }

  void structured_outputs(const std::string& name, const value& given) {
    if (!is_object(name, given)) return;
    only(name, given,
         {"json", "regex", "choice", "grammar", "json_object", "disable_fallback",
          "disable_additional_properties", "disable_any_whitespace", "whitespace_pattern"});
    const bool closed = flag(name, given, "disable_additional_properties", true);
    if (flag(name, given, "disable_any_whitespace"))
      from_.reject(name + ".disable_any_whitespace", "false: white space is free", value(true));
    if (const auto* pattern = member(given, "whitespace_pattern"))
      from_.reject(name + ".whitespace_pattern", "absent: white space is free", *pattern);
    const bool empty = !to_.has_value();
    each(name + ".", closed, [&](std::string_view key) { return member(given, key); });
    if (empty && from_.ok() && !to_.has_value())
      from_.reject(name, "an object with one of json, regex, choice, grammar, json_object", given);
  }

  void typed_grammar(const std::string& name, const value& given) {
    if (!is_object(name, given)) return;
    only(name, given, {"type", "value"});
    const auto* form = member(given, "value");
    if (form == nullptr) return missing(name + ".value");
    const std::string type = text_of(member(given, "type"));
    if (type == "regex") return text(name + ".value", *form, config::grammar_kind::regex);
    if (type == "json" || type == "json_object") return schema(name + ".value", *form, true);
    if (type == "json_schema") return named_schema(name + ".value", *form);
    const auto* unknown = member(given, "type");
    from_.reject(name + ".type", R"("json", "regex" or "json_schema")",
                 unknown == nullptr ? value() : *unknown);
  }

  /// Reads vLLM's fields `json`, `regex`, `choice`, `grammar` and `json_object`. In error messages
  /// each name follows `prefix`, such as "guided_".
  template <class Find>
  void each(const std::string& prefix, bool closed, Find find) {
    if (const auto* v = find("json")) schema(prefix + "json", *v, closed);
    if (const auto* v = find("regex")) text(prefix + "regex", *v, config::grammar_kind::regex);
    if (const auto* v = find("choice")) choice(prefix + "choice", *v);
    if (const auto* v = find("grammar")) text(prefix + "grammar", *v, config::grammar_kind::ebnf);
    if (const auto* v = find("json_object")) {
      if (v->as_bool() == nullptr) return from_.reject(prefix + "json_object", "true or false", *v);
      if (*v->as_bool())
        put(prefix + "json_object", *v, {.kind = config::grammar_kind::json_object});
    }
  }

  /// Reads a JSON Schema. `closed` forbids all properties that the schema does not declare, because
  /// a model tends to add properties of its own if it may. OpenAI's formats leave objects open when
  /// they say `"strict": false`, vLLM's when they say `"disable_additional_properties": false`.
  void schema(const std::string& name, const value& given, bool closed) {
    if (const auto* written = given.as_string()) {
      auto parsed = parse_json(*written);
      if (!parsed.ok() || parsed.value().as_object() == nullptr)
        return from_.reject(name, "a JSON Schema, an object or its JSON text", given);
      return schema(name, parsed.value(), closed);
    }
    if (given.as_object() == nullptr)
      return from_.reject(name, "a JSON Schema, an object or its JSON text", given);
    put(name, given,
        {.kind = config::grammar_kind::json_schema,
         .text = json_text(given),
         .closed_objects = closed});
  }

  void text(const std::string& name, const value& given, config::grammar_kind kind) {
    const auto* written = given.as_string();
    if (written == nullptr || written->empty())
      return from_.reject(name, "a text that is not empty", given);
    put(name, given, {.kind = kind, .text = *written});
  }

  void ollama_format(const std::string& name, const value& given) {
    if (given == value("")) return;
    if (given == value("json"))
      return put(name, given, {.kind = config::grammar_kind::json_object});
    if (given.as_object() == nullptr)
      return from_.reject(name, "\"json\" or a JSON Schema, an object", given);
    schema(name, given, true);
  }

private:
  bool is_object(const std::string& name, const value& given) {
    if (given.as_object() != nullptr) return true;
    from_.reject(name, "an object", given);
    return false;
  }

  void bad_type(const std::string& name, const value& given) {
    const auto* type = member(given, "type");
    from_.reject(name + ".type", R"("text", "json_object" or "json_schema")",
                 type == nullptr ? value() : *type);
  }

  void missing(const std::string& name) { from_.reject({name, "be given", "nothing"}); }

  void only(const std::string& name, const value& given,
            std::initializer_list<std::string_view> known) {
    for (const auto& [key, ignored] : *given.as_object())
      if (!ignored.is_null() && std::find(known.begin(), known.end(), key) == known.end())
        return from_.reject(name + "." + key, "absent: this server does not know it", ignored);
  }

  bool flag(const std::string& name, const value& given, std::string_view key,
            bool absent = false) {
    const auto* found = member(given, key);
    if (found == nullptr) return absent;
    if (found->as_bool() != nullptr) return *found->as_bool();
    from_.reject(name + "." + std::string(key), "true or false", *found);
    return false;
  }

  void named_schema(const std::string& name, const value& given) {
    if (!is_object(name, given)) return;
    only(name, given, {"type", "name", "description", "schema", "strict"});
    for (const auto* key : {"name", "description"})
      if (const auto* v = member(given, key); v != nullptr && v->as_string() == nullptr)
        from_.reject(name + "." + key, "a string", *v);
    // `strict` decides only whether objects are closed; the output always conforms to the schema.
    const bool closed = flag(name, given, "strict", true);
    const auto* own = member(given, "schema");
    if (own == nullptr) return missing(name + ".schema");
    if (!is_object(name + ".schema", *own)) return;
    schema(name + ".schema", *own, closed);
  }

  void choice(const std::string& name, const value& given) {
    const auto* list = given.as_list();
    if (list == nullptr || list->empty() || list->size() > max_form_choices)
      return from_.reject(name, "a list of 1 to " + std::to_string(max_form_choices) + " strings",
                          given);
    spec form{.kind = config::grammar_kind::choice};
    for (std::size_t i = 0; i < list->size(); ++i) {
      const auto* one = (*list)[i].as_string();
      if (one == nullptr || one->empty())
        return from_.reject(name + "[" + std::to_string(i) + "]", "a string that is not empty",
                            (*list)[i]);
      form.choices.push_back(*one);
    }
    put(name, given, std::move(form));
  }

  void put(const std::string& name, const value& given, spec form) {
    if (!from_.ok()) return;
    if (to_.has_value())
      return from_.reject(name, "absent when `" + given_by_ + "` is given as well", given);
    std::size_t bytes = form.text.size();
    for (const auto& one : form.choices)
      bytes += one.size();
    if (bytes > max_form_bytes)
      return from_.reject(
          {name, "be at most " + std::to_string(max_form_bytes) + " bytes", std::to_string(bytes)});
    given_by_ = name;
    // Error messages name the whole field, since the place of the schema inside the field says
    // nothing more to a client.
    field_ = name;
    for (const auto* whole :
         {"response_format", "text.format", "output_config.format", "output_format"})
      if (name.starts_with(whole)) field_ = whole;
    to_ = std::move(form);
  }

  fields& from_;
  std::optional<spec>& to_;
  std::string& field_; ///< the field to name in error messages of the engine
  std::string given_by_;
};

constexpr std::string_view schema_or_text = R"("type":["object","string"])";

constexpr std::array form_rows = {
    field_row{"response_format",
              R"("type":"object","properties":{"type":{"enum":["text","json_object",)"
              R"("json_schema"]},"json_schema":{"type":"object"}},"required":["type"])",
              "What the output must look like, in OpenAI's form."},
    field_row{"structured_outputs", schema::object,
              "The same in vLLM's form: `json`, `regex`, `choice`, `grammar` or `json_object`."},
    field_row{"guided_json", schema_or_text, "A JSON Schema that the output follows."},
    field_row{"guided_regex", schema::string, "A regular expression that the output matches."},
    field_row{"guided_choice", R"("type":"array","items":{"type":"string"})",
              "The output is one of these texts."},
    field_row{"guided_grammar", schema::string, "A grammar (EBNF) that the output follows."},
    field_row{"guided_json_object", schema::boolean, "The output is a JSON object."},
    field_row{"guided_whitespace_pattern", schema::any, "absent: white space is free",
              field_use::refused},
    field_row{"grammar", schema::string, "A grammar as llama.cpp names it."},
    field_row{"json_schema", schema_or_text, "A JSON Schema as llama.cpp names it."}};

void read_all(fields& from, form_reader& reader) {
  if (const auto* v = from.find("response_format")) reader.response_format("response_format", *v);
  if (const auto* v = from.find("structured_outputs"))
    reader.structured_outputs("structured_outputs", *v);
  reader.each("guided_", true, [&](std::string_view key) -> const value* {
    return from.find("guided_" + std::string(key));
  });
  if (const auto* v = from.find("guided_whitespace_pattern"))
    from.reject("guided_whitespace_pattern", "absent: white space is free", *v);
  // llama.cpp's clients send an empty grammar if they want none.
  if (const auto* v = from.find("grammar"); v != nullptr && *v != value(""))
    reader.text("grammar", *v, config::grammar_kind::ebnf);
  if (const auto* v = from.find("json_schema")) reader.schema("json_schema", *v, true);
}

} // namespace

void read_output_form(fields& from, actors::request& to) {
  form_reader reader(from, to);
  read_all(from, reader);
}

void add_form_rows(field_rows& to) {
  add_rows(to, form_rows);
}

void read_ollama_format(fields& from, actors::request& to) {
  form_reader reader(from, to);
  if (const auto* v = from.find("format")) reader.ollama_format("format", *v);
}

void read_response_form(fields& from, actors::request& to) {
  form_reader reader(from, to);
  if (const auto* text = from.object("text"))
    if (const auto* format = text->find("format"); format != nullptr && !format->is_null())
      reader.text_format("text.format", *format);
  read_all(from, reader);
}

void read_message_form(fields& from, actors::request& to) {
  form_reader reader(from, to);
  if (const auto* output = from.object("output_config"))
    if (const auto* format = member(*output, "format"))
      reader.message_format("output_config.format", *format);
  if (const auto* format = from.find("output_format"))
    reader.message_format("output_format", *format);
  read_all(from, reader);
}

void read_typed_grammar(fields& from, const std::string& name, const value& given,
                        actors::request& to) {
  form_reader(from, to).typed_grammar(name, given);
}

} // namespace twill::net
