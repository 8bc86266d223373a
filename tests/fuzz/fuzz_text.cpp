// Random bytes for the code of models/text that handles input of clients and output of models: see
// README.md.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "models/checkpoint/json.hpp"
#include "models/text/chat_template.hpp"
#include "models/text/detokenizer.hpp"
#include "models/text/grammar/schema/check.hpp"
#include "models/text/grammar/schema/document.hpp"
#include "models/text/grammar/spec_text.hpp"
#include "models/text/tokenizer/pretokenizer.hpp"
#include "models/text/tokenizer/regex.hpp"
#include "models/text/tool_calls/call_grammar.hpp"
#include "models/text/tool_calls/detect.hpp"
#include "models/text/tool_calls/parser.hpp"
#include "models/text/tool_calls/tool_text.hpp"
#include "tests/fuzz/driver.hpp"
#include "tests/models/text/tool_calls/parser_runner.hpp"

namespace {

using namespace twill;
using namespace twill::models;
using config::grammar_spec;
using fuzz::expect;

/// Removes the first byte, which chooses between options of a target.
unsigned take_choice(std::string_view& bytes) {
  if (bytes.empty()) return 0;
  const auto first = static_cast<unsigned char>(bytes.front());
  bytes.remove_prefix(1);
  return first;
}

std::vector<tool_calls::call_event> read_answer(const tool_calls::parser_options& options,
                                                std::string_view answer, std::size_t piece) {
  tool_calls::parser reader(options);
  std::vector<tool_calls::call_event> events;
  const bool whole_text = is_utf8(answer);
  const auto take = [&](const std::vector<tool_calls::call_event>& more) {
    for (const auto& e : more)
      if (whole_text && e.kind != tool_calls::call_event_kind::call_arguments)
        expect(is_utf8(e.bytes), "no piece of text ends inside a character");
    test::join(events, more);
  };
  for (; !answer.empty(); answer.remove_prefix(std::min(piece, answer.size())))
    take(reader.push(answer.substr(0, piece)));
  take(reader.finish());
  return events;
}

/// Parses a model's answer, which clients can influence; the first byte chooses its format.
void fuzz_answer(std::string_view bytes) {
  const auto choice = take_choice(bytes);
  const auto& formats = tool_calls::known_formats();
  tool_calls::parser_options options;
  if (choice % 8 < formats.size()) options.calls = formats[choice % 8];
  if ((choice & 8U) != 0) options.thoughts.emplace();
  options.begins_in_reasoning = options.thoughts.has_value() && (choice & 16U) != 0;
  const auto whole = read_answer(options, bytes, std::max<std::size_t>(bytes.size(), 1));
  expect(read_answer(options, bytes, 1) == whole, "the same answer, byte by byte");
  expect(read_answer(options, bytes, 5) == whole, "the same answer, by fives");
  int open = -1;
  for (const auto& e : whole) {
    using kind = tool_calls::call_event_kind;
    if (e.kind == kind::call_begin) {
      expect(open < 0 && !e.bytes.empty(), "a call begins outside others, with a name");
      open = e.call;
    } else if (e.kind == kind::call_arguments || e.kind == kind::call_end) {
      expect(e.call == open, "arguments belong to the call that is open");
      if (e.kind == kind::call_end) open = -1;
    }
  }
  expect(open < 0, "every call ends");
}

const std::vector<std::shared_ptr<const chat_template>>& templates() {
  static const auto all = [] {
    std::vector<std::shared_ptr<const chat_template>> made;
    for (const char* source :
         {"{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content | trim }}<|im_end|>\n"
          "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
          "{{ bos_token }}{% for m in messages %}{% if m.tool_calls %}{% for c in m.tool_calls %}"
          "<tool_call>{{ c.function.name }} {{ c.function.arguments | tojson }}</tool_call>"
          "{% endfor %}{% elif m.content is string %}{{ m['role'] ~ ': ' ~ m['content'] }}{% else "
          "%}"
          "{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %}{% endfor %}"
          "{% if tools %}{{ tools | tojson(indent=2) }}{% endif %}",
          "{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
          "{{ raise_exception('roles must alternate') }}{% endif %}{% if m['role'] == 'user' %}"
          "{{ '[INST] ' + m['content'] + ' [/INST]' }}{% else %}{{ "
          "m['content'].split('</think>')[-1]"
          ".lstrip('\\n') + eos_token }}{% endif %}{% endfor %}{{ extra[:3] if extra else '' }}"}) {
      auto parsed = chat_template::parse(source, "<s>", "</s>");
      expect(parsed.ok(), "the templates of this program parse");
      made.push_back(parsed.value());
    }
    return made;
  }();
  return all;
}

/// A whole conversation as JSON: {"messages": ..., "tools": ..., "extra": ...}.
void fuzz_messages(std::string_view bytes) {
  const auto parsed = parse_json(bytes, "conversation");
  if (!parsed.ok()) return;
  const auto part = [&](const char* name) {
    const auto* found = parsed.value().find(name);
    return found == nullptr ? value() : *found;
  };
  for (const auto& chat : templates()) {
    template_input input;
    input.tools = part("tools");
    const auto received = tool_calls::tool_text(input.tools, tool_calls::known_formats().back());
    input.messages = chat->fit(part("messages"), received);
    input.extra.emplace_back("extra", part("extra"));
    const auto rendered = chat->render(input);
    if (!rendered.ok()) continue;
    std::size_t last = 0;
    for (const auto& [begin, end] : rendered.value().literal) {
      expect(begin >= last && begin <= end && end <= rendered.value().text.size(),
             "literal ranges are in order and inside the text");
      last = end;
    }
  }
}

void fuzz_schema(std::string_view bytes) {
  const auto choice = take_choice(bytes);
  grammar_spec spec;
  spec.kind = config::grammar_kind::json_schema;
  spec.text = std::string(bytes);
  spec.closed_objects = (choice & 1U) != 0;
  const auto text = grammar::grammar_text(spec);
  expect(!text.ok() || !text.value().empty(), "a grammar has a text");
  const auto wrong = grammar::check_schema(spec.text);
  expect(!wrong || !wrong->detail.empty(), "a refusal has words");
  const std::vector<tool_calls::callable> tools{{"f", spec.text}, {"g\"\\", ""}};
  const auto& formats = tool_calls::known_formats();
  if (const auto framed =
          tool_calls::call_grammar(formats[choice / 2 % formats.size()], tools, choice % 2 == 0))
    static_cast<void>(grammar::grammar_text(*framed));
}

void fuzz_regex(std::string_view bytes) {
  grammar_spec spec;
  spec.kind = config::grammar_kind::regex;
  spec.text = std::string(bytes);
  static_cast<void>(grammar::grammar_text(spec));
  spec.kind = config::grammar_kind::choice;
  spec.choices = {spec.text, "b"};
  static_cast<void>(grammar::grammar_text(spec));
}

/// Bytes of tokens, cut anywhere, become the same text as in one piece.
void fuzz_utf8(std::string_view bytes) {
  const auto decode = [&](std::size_t piece) {
    std::string waiting, out;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      waiting += bytes.substr(at, piece);
      take_utf8(waiting, out);
      expect(waiting.size() < 4, "at most an unfinished character waits");
    }
    if (!waiting.empty()) out += "\xEF\xBF\xBD";
    return out;
  };
  const auto whole = decode(std::max<std::size_t>(bytes.size(), 1));
  expect(is_utf8(whole), "decoded text is UTF-8");
  expect(decode(1) == whole && decode(3) == whole, "the cuts do not matter");
  if (is_utf8(bytes)) expect(whole == bytes, "good text stays as it is");
}

/// The bytes are a regular expression by which a tokenizer.json splits texts.
void fuzz_split(std::string_view bytes) {
  const auto compiled = regex::make_oniguruma(std::string(bytes));
  expect(compiled.ok() || !compiled.detail().empty(), "a refusal has words");
  if (!compiled.ok()) return;
  const std::string text = "It's 12,345 \xE4\xB8\x80\xC3\x89\xC2\xB2\n\n  x\xE2\x80\xA8";
  for (const auto behavior : {match_behavior::isolated, match_behavior::merged_with_next}) {
    word_list list;
    const pretokenizer split({split_by(compiled.value(), behavior, false)});
    if (!split.split(text, true, list).ok()) return;
    std::string sum;
    for (const std::string_view word : list.words) {
      expect(!word.empty() && is_utf8(word), "words are whole characters");
      sum += word;
    }
    expect(sum == text, "the words of a text are the text");
  }
}

} // namespace

const std::map<std::string, fuzz::target>& fuzz::targets() {
  static const std::map<std::string, target> all{
      {"answers",
       {fuzz_answer,
        {"\x08<think>hm</think>so <tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": "
         "[1, \"\\u00e9\"]}}\n</tool_call> \xE5\x8C\x97",
         "\x01[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {}}, {\"arguments\": \"{}\", "
         "\"name\": "
         "\"g\"}]",
         "\x01[TOOL_CALLS]f[ARGS]{\"a\": 1}",
         "\x01[TOOL_CALLS]f[CALL_ID]abc123xyz[ARGS]{\"a\": 1}[TOOL_CALLS]g [ARGS] {}",
         "\x02<|python_tag|>{\"name\": \"f\", \"parameters\": {\"a\": null}}; {\"name\": \"g\"}",
         "\x03"
         "f\n ```python\ntool_call(a='b\\'', c=[1, True], d={'k': None})\n```",
         "\x04[{\"function\": {\"name\": \"f\", \"arguments\": {}}}]"}}},
      {"messages",
       {fuzz_messages,
        {R"({"messages":[{"role":"system","content":"s"},{"role":"user","content":"<|im_end|> x"},)"
         R"({"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function",)"
         R"("function":{"name":"f","arguments":"{\"a\":1}"}}]},)"
         R"({"role":"tool","tool_call_id":"call_1","name":"f","content":"2"}],)"
         R"("tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]})",
         R"({"messages":[{"role":"user","content":[{"type":"text","text":"a\ufdd0b"}]},)"
         R"({"role":"developer","content":"</think>"}],"extra":[1,{"a":"b"}]})"}}},
      {"schema",
       {fuzz_schema,
        {R"(0{"type":"object","properties":{"a":{"type":"integer","minimum":-3,"maximum":1e2},)"
         R"("b":{"type":"string","pattern":"^a[b-d]+$"}},"required":["b"],)"
         R"("additionalProperties":false})",
         R"(1{"$ref":"#/$defs/x","$defs":{"x":{"anyOf":[{"const":"\u00e9"},{"type":"array",)"
         R"("items":{"$ref":"#/$defs/x"},"maxItems":2}]}}})",
         R"(2{"enum":[1,2.5,null,{"a":[]}],"not":{"const":1},"if":{"type":"null"},"then":false})",
         R"(3{"type":"string","format":"date","minLength":2,"maxLength":12})"}}},
      {"regex",
       {fuzz_regex, {"^(a|b)*?[^\\d\\u0041-\\x5a]{2,3}$", "(?=x)\\p{Lu}+", "[\\s\\S]\\b"}}},
      {"split",
       {fuzz_split,
        {"[\\p{L}&&[^\\p{Han}]]+|(?i:'s|ll)", "(?x: \\h{,2} # c\n)(?<n>[[:^alpha:]\\-]++)", "\\b$",
         "[^\\S\\r\\n]+(?!\\S)|\\u4e00\\K.|(?<=a)\\R", "(?m:.)(?>a|\\x{42})*?"}}},
      {"utf8",
       {fuzz_utf8, {"a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", "\xED\xA0\x80\xF4\x90\x80\x80"}}},
  };
  return all;
}
