// No object of an answer has a key twice, whatever the schema says about the object's properties.
#include "models/text/grammar/unique_keys.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "models/checkpoint/json.hpp"
#include "models/text/grammar/schema/validator.hpp"
#include "tests/catch.hpp"
#include "tests/models/text/grammar/random_answer.hpp"

using namespace twill::test;

namespace {

/// Bytes, and tokens that hold the ends, beginnings and wholes of keys, as real vocabularies do.
const vocabulary_ptr& long_tokens() {
  static const vocabulary_ptr made = [] {
    std::vector<std::string> bytes = byte_vocabulary()->bytes;
    for (const char* token :
         {"\"p",   "p1",   "p1\"", "p2\":",   "\"p3\"", " \"p4\":", "\":",      "\":\"",
          "\",\"", "\": ", ", \"", "{\"",     "\"\"",   "\":{\"",   ",\"a\":",  "\",\"a\":",
          "ab",    "a\"",  "b\":", "\"ab\":", "\\\"",   "\\\"a",    "a\\\"\":", "\\u0061",
          "\\u00", "61\"", "1,\"", "null,\"", "null",   "x1\":",    "xx",       "\"x"})
      bytes.emplace_back(token);
    return make_vocabulary(std::move(bytes), {end_of_answer});
  }();
  return made;
}

/// The keys of each object of a JSON text, as spelled in the text. They are found by reading the
/// text alone, without the grammar.
std::vector<std::vector<std::string>> keys_of(const std::string& text) {
  std::vector<std::vector<std::string>> all, open;
  std::string last;
  bool colon_follows = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      const auto from = i++;
      while (text.at(i) != '"')
        i += text[i] == '\\' ? 2 : 1;
      last = *twill::models::parse_json(text.substr(from, i + 1 - from), "key").value().as_string();
      colon_follows = true;
    } else if (c == ':' && colon_follows) {
      open.back().push_back(last);
    } else if (c == '{' || c == '[') {
      open.emplace_back();
    } else if (c == '}' || c == ']') {
      all.push_back(open.back());
      open.pop_back();
    }
    if (c != '"' && c != ' ' && c != '\n' && c != '\r' && c != '\t') colon_follows = false;
  }
  return all;
}

bool has_repeated_key(const std::string& text) {
  for (const auto& keys : keys_of(text))
    if (std::set<std::string>(keys.begin(), keys.end()).size() != keys.size()) return true;
  return false;
}

struct random_schema {
  std::string text;
  std::vector<std::string> names;
  std::set<std::string> required;
};

random_schema schema_of(std::mt19937& random) {
  static const char* const rests[] = {R"("additionalProperties": false)",
                                      R"("additionalProperties": {"type": "null"})",
                                      R"("patternProperties": {"^[ab]{1,2}$": {"type": "null"}})",
                                      R"("patternProperties": {"^(x1|a+)$": {"type": "null"}})",
                                      R"("patternProperties": {"^[a-c]{1,7}$": {"type": "null"}})",
                                      R"("additionalProperties": {"type": "null"},
                                         "propertyNames": {"pattern": "^(p\\d+|a|b|[xy]{1,4})$"})",
                                      R"("minProperties": 1)",
                                      R"("title": "plain")"};
  random_schema out;
  const auto n = 1 + random() % 12;
  for (std::size_t i = 0; i < n; ++i)
    out.names.push_back("p" + std::to_string(i));
  std::shuffle(out.names.begin(), out.names.end(), random);
  std::string properties, required;
  for (const auto& name : out.names)
    properties += (properties.empty() ? "" : ", ") + ("\"" + name + "\": {\"enum\": [1, null]}");
  auto order = out.names;
  std::shuffle(order.begin(), order.end(), random);
  const auto n_required = random() % 3 == 0 ? 0 : random() % (n + 1);
  for (std::size_t i = 0; i < n_required; ++i) {
    required += (i > 0 ? ", \"" : "\"") + order[i] + "\"";
    out.required.insert(order[i]);
  }
  out.text = R"({"type": "object", "properties": {)" + properties + R"(}, "required": [)" +
             required + "], " + rests[random() % std::size(rests)] + "}";
  return out;
}

} // namespace

TEST_CASE("unique keys: answers to random schemas have no key twice, and all required ones") {
  std::mt19937 random(11);
  int n_ended = 0, n_keys = 0;
  for (int round = 0; round < 60; ++round) {
    const auto schema = schema_of(random);
    INFO(schema.text);
    const auto& tokens = round % 2 == 0 ? byte_vocabulary() : long_tokens();
    const auto grammar = compiled(schema_spec(schema.text, round % 3 != 0), tokens);
    REQUIRE(grammar.ok());
    for (int i = 0; i < 8; ++i) {
      const auto drawn = random_answer(grammar.value(), random, tokens);
      INFO(drawn.text);
      REQUIRE_FALSE(drawn.dead_end);
      if (!drawn.ended) continue;
      ++n_ended;
      REQUIRE_FALSE(has_repeated_key(drawn.text));
      const auto keys = keys_of(drawn.text).back();
      n_keys += static_cast<int>(keys.size());
      for (const auto& name : schema.required)
        REQUIRE(std::find(keys.begin(), keys.end(), name) != keys.end());
    }
    // A valid text whose keys are in the order of `properties` passes.
    if (tokens != byte_vocabulary()) continue;
    for (int i = 0; i < 4; ++i) {
      std::string text = "{";
      for (const auto& name : schema.names)
        if (schema.required.contains(name) || random() % 2 == 0)
          text += (text.size() > 1 ? ", \"" : "\"") + name + "\": 1";
      text += "}";
      if (text == "{}") continue;
      INFO(text);
      CHECK(passes(grammar.value(), text));
    }
  }
  CHECK(n_ended > 320);
  CHECK(n_keys > 1600);
}

TEST_CASE("unique keys: few properties come in any order, many in that of the schema") {
  const auto schema = [](int n, const char* required) {
    std::string properties;
    for (int i = 0; i < n; ++i)
      properties += (i > 0 ? ", \"p" : "\"p") + std::to_string(i) + "\": {}";
    return schema_spec(R"({"type": "object", "properties": {)" + properties +
                           R"(}, "required": [)" + required + "]}",
                       true);
  };
  const auto accepts = [](const twill::config::grammar_spec& spec, const std::string& text) {
    return passes(compiled(spec).value(), text);
  };
  CHECK(accepts(schema(5, ""), R"({"p4": 0, "p0": 0, "p2": 0})"));
  CHECK_FALSE(accepts(schema(5, ""), R"({"p0": true, "p0": true})"));
  CHECK(accepts(schema(8, "\"p3\""), R"({"p7": 0, "p3": 0, "p0": 0})"));
  CHECK_FALSE(accepts(schema(9, ""), R"({"p8": 0, "p0": 0})"));
  // Of many properties, the required ones may stand anywhere if they are few.
  const auto mixed = schema(12, "\"p9\", \"p2\"");
  for (const auto* text : {R"({"p9": 0, "p2": 0})", R"({"p2": 0, "p9": 0, "p0": 0, "p11": 0})",
                           R"({"p0": 0, "p9": 0, "p1": 0, "p2": 0, "p5": 0})"})
    CHECK(accepts(mixed, text));
  for (const auto* text : {R"({"p9": 0})", R"({"p9": 0, "p2": 0, "p9": 0})",
                           R"({"p2": 0, "p5": 0, "p9": 0, "p5": 0})"})
    CHECK_FALSE(accepts(mixed, text));
}

TEST_CASE("unique keys: keys without fixed names stand once, however they are written") {
  const auto free = compiled(schema_spec(R"({"type": "object"})")).value();
  for (const auto* text : {R"({"a": 1, "b": {"a": 1}, "c": [{"a": 1}, {"a": 2}], "ab": 1})",
                           R"({"": 1, "a\"": "a\"", "é": 1})",
                           R"({"a": "a", "b": ",\"a\":", "\ud83d\ude00": {}, "\ud83d": 1})"})
    CHECK(passes(free, text));
  for (const auto* text :
       {R"({"a": 1, "a": 2})", R"({"x": {"b": [1, {"k": {}, "k": 1}]}})", R"({"": 1, "": 2})",
        R"({"a": 1, "\u0061": 2})", R"({"\u00e9": 1, "é": 2})", R"({"é": 1, "\u00E9": 2})",
        R"({"a\"b": 1, "a\u0022b": 2})", R"({"a/": 1, "a\/": 2})", R"({"😀": 1, "\ud83d\ude00": 2})",
        R"({"a": {"a": 1}, "b": 1, "a": 2})"})
    CHECK_FALSE(passes(free, text));
  twill::config::grammar_spec any;
  CHECK_FALSE(passes(compiled(any).value(), R"({"a": 1, "a": 2})"));
  // A client's own grammar is not changed: it may allow a key twice.
  twill::config::grammar_spec own;
  own.kind = twill::config::grammar_kind::ebnf;
  own.text = R"(root ::= "{\"a\":1,\"a\":2}")";
  CHECK(passes(compiled(own).value(), R"({"a":1,"a":2})"));
}

TEST_CASE("unique keys: names that only end as a key that stands are not begun") {
  const auto grammar = compiled(schema_spec(
      R"({"type": "object", "patternProperties": {"^([a-z]{2}|en-[0-9A-Za-z]+-(x|y))$": {"type": "null"}},
          "additionalProperties": false})"));
  REQUIRE(grammar.ok());
  const auto mask_after = [&](const std::string& text) {
    matcher at(grammar.value());
    std::vector<std::int32_t> mask(mask_words(byte_vocabulary()->size()));
    for (const char c : text) {
      at.fill_next_mask(mask);
      REQUIRE(at.accept(static_cast<unsigned char>(c)));
    }
    at.fill_next_mask(mask);
    std::string allowed;
    for (int c = 0; c < 256; ++c)
      if (allows(mask, c)) allowed += static_cast<char>(c);
    return allowed;
  };
  CHECK(mask_after(R"({"d)").size() == 26);
  CHECK(mask_after(R"({"de":null,"d)") == "abcdfghijklmnopqrstuvwxyz");
  std::string all = "{";
  for (char c = 'a'; c <= 'z'; ++c)
    all += std::string(c == 'a' ? "" : ",") + "\"q" + c + "\":null";
  CHECK(mask_after(all + ",\"") == "abcdefghijklmnoprstuvwxyz");
  const std::string tagged = R"({"en-a-x":null,"en-a-y":null,"en-a)";
  CHECK(mask_after(tagged).find('-') == std::string::npos);
  CHECK(mask_after(R"({"en-a-x":null,"en-a-)") == "y");
}

TEST_CASE("unique keys: a mask has no bit beyond the tokens") {
  std::vector<std::string> bytes = byte_vocabulary()->bytes;
  while (bytes.size() % 32 != 1)
    bytes.emplace_back("xyz");
  const auto tokens = make_vocabulary(std::move(bytes), {end_of_answer});
  for (const auto& [schema, text] :
       {std::pair(R"({"type": "object", "propertyNames": {"maxLength": 4}})", R"({"abcd":1,"ab)"),
        std::pair(R"({"type": "object", "propertyNames": {"pattern": "^(ab|[^a].*)$"}})",
                  R"({"ab":1,")")}) {
    CAPTURE(text);
    const auto grammar = compile_here(grammar_text(schema_spec(schema)).value(), tokens, true);
    REQUIRE(grammar.ok());
    matcher at(grammar.value());
    std::vector<std::int32_t> mask(mask_words(tokens->size()));
    for (const char c : std::string_view(text)) {
      at.fill_next_mask(mask);
      CHECK((static_cast<std::uint32_t>(mask.back()) & ~1U) == 0);
      REQUIRE(at.accept(static_cast<unsigned char>(c)));
    }
    at.fill_next_mask(mask);
    CHECK((static_cast<std::uint32_t>(mask.back()) & ~1U) == 0);
  }
}

TEST_CASE("unique keys: dead ends of long names are looked for in few steps") {
  const auto& bytes = byte_vocabulary()->bytes;
  const auto tokens = key_tokens_of(bytes);
  for (const std::size_t size : {200, 900}) {
    unique_keys keys;
    REQUIRE(keys.push("{\"b" + std::string(size, 'a') + "\":null,"));
    // A schema that forces the whole name: after each prefix only the name's next byte may follow.
    int n_tried = 0;
    const text_probe probe{[&n_tried](const std::string& text) {
                             ++n_tried;
                             return text.size() > 1;
                           },
                           [] {}};
    std::vector<std::int32_t> mask(mask_words(byte_vocabulary()->size()), -1);
    keys.forbid(mask, bytes, tokens, probe);
    CAPTURE(size);
    CHECK(n_tried < 10'000);
  }
}

TEST_CASE("unique keys: a rollback forgets keys, a fork keeps them") {
  const auto grammar = compiled(schema_spec(R"({"type": "object"})")).value();
  matcher at(grammar);
  REQUIRE(at.accept_text(R"({"k":1,)"));
  for (const char c : std::string("\"k"))
    REQUIRE(at.accept(c));
  std::vector<std::int32_t> mask(mask_words(byte_vocabulary()->size()));
  matcher other = at.fork();
  for (auto* each : {&at, &other}) {
    each->fill_next_mask(mask);
    CHECK_FALSE(allows(mask, '"'));
  }
  at.rollback(3);
  REQUIRE(at.accept_text(R"({"l":1,"k)"));
  at.fill_next_mask(mask);
  CHECK(allows(mask, '"'));
}
