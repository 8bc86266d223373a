#include <ctime>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/chat_template.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "tests/support/json.hpp"

using namespace twill;
using namespace twill::models;

namespace {

value_list chat(const std::string& content) {
  return {value(value_object{{"role", "user"}, {"content", value(content)}})};
}

rendered_prompt render(const std::string& source, const std::string& content) {
  auto parsed = chat_template::parse(source, "<s>", "</s>");
  REQUIRE(parsed.ok());
  auto done = parsed.value()->render({.messages = chat(content)});
  INFO((done.ok() ? std::string() : done.detail()));
  REQUIRE(done.ok());
  return done.value();
}

/// The literal parts of a rendered prompt, each in brackets.
std::string literals(const std::string& source, const std::string& content) {
  const rendered_prompt p = render(source, content);
  std::string out;
  std::size_t last = 0;
  for (const auto& [begin, end] : p.literal) {
    REQUIRE(begin >= last);
    REQUIRE(begin < end);
    REQUIRE(end <= p.text.size());
    out += "[" + p.text.substr(begin, end - begin) + "]";
    last = end;
  }
  return out;
}

std::string error_of(const std::string& source, const value& messages = value(value_list{})) {
  auto parsed = chat_template::parse(source, "", "");
  if (!parsed.ok()) {
    CHECK(parsed.code() == errc::bad_template);
    return parsed.detail();
  }
  auto done = parsed.value()->render({.messages = messages});
  REQUIRE_FALSE(done.ok());
  CHECK(done.code() == errc::template_failed);
  return done.detail();
}

const std::string m = "messages[0].content";

} // namespace

TEST_CASE("a prompt can be written for another time") {
  const auto parsed = chat_template::parse("{{ strftime_now('%Y') }}", "", "");
  REQUIRE(parsed.ok());
  const auto year_of = [&](std::int64_t now_unix_s) {
    return parsed.value()->render({.messages = chat(""), .now_unix_s = now_unix_s}).value().text;
  };
  CHECK(year_of(1'000'000'000) == "2001");
  CHECK(year_of(0) >= "2026"); // the clock's
}

TEST_CASE("text from messages is reported as literal, text of the template is not") {
  CHECK(literals("<a>{{ " + m + " }}<b>", "hi") == "[hi]");
  CHECK(literals("{{ '<a>' + " + m + " + '<b>' }}", "hi") == "[hi]");
  CHECK(literals("{{ '<a>' ~ " + m + " ~ 1 }}", "hi") == "[hi]");
  CHECK(literals("{{ '<|' + messages[0].role + '|>' }}", "hi") == "[user]");
  CHECK(literals("<a>{{ bos_token }}{{ 1 + 2 }}", "hi").empty());
}

TEST_CASE("literal ranges follow text through the operations of templates") {
  CHECK(literals("{{ ('<' + " + m + " + '>')[1:3] }}", "abcd") == "[ab]");
  CHECK(literals("{{ ('<' + " + m + " + '>')[::-1] }}", "abc") == "[cba]");
  CHECK(literals("{{ ('  ' + " + m + ")|trim }}", " a b ") == "[a b]");
  CHECK(literals("{{ " + m + ".strip('x') }}", "xabx") == "[ab]");
  CHECK(literals("{{ ('A,' + " + m + ").split(',')|join('+') }}", "b,c") == "[b][c]");
  CHECK(literals("{{ 'say X!'|replace('X', " + m + ") }}", "hi") == "[hi]");
  CHECK(literals("{{ " + m + "|replace('i', 'I') }}", "hill") == "[h][ll]");
  CHECK(literals("{{ " + m + "|tojson }}", "q\"") == "[\"q\\\"\"]");
  CHECK(literals("{{ messages|tojson }}", "x").size() > 10);
  CHECK(literals("{{ ('a' + " + m + ")|upper }}", "b") == "[AB]");
  CHECK(literals("{% set x = " + m + " %}<{{ x }}>", "hi") == "[hi]");
  CHECK(literals("{% set x %}<{{ " + m + " }}>{% endset %}{{ x }}", "hi") == "[hi]");
  CHECK(literals("{% macro f(t) %}<{{ t }}>{% endmacro %}{{ f(" + m + ") }}", "hi") == "[hi]");
  CHECK(literals("{% set ns = namespace(t='') %}{% for x in messages %}{% set ns.t = ns.t + '<' + "
                 "x.content %}{% endfor %}{{ ns.t }}",
                 "hi") == "[hi]");
  CHECK(literals("{% for c in " + m + " %}<{{ c }}>{% endfor %}", "ab") == "[a][b]");
  CHECK(literals("{{ '%s/%s'|format(" + m + ", 1) }}", "x") == "[x]");
  CHECK(literals("{{ '{}/{}'.format('a', " + m + ") }}", "x") == "[x]");
  CHECK(literals("{{ [" + m + "] }}", "x") == "[['x']]");
  CHECK(literals("{{ (" + m + " ~ '\n<b>')|indent(2) }}", "a\nb") == "[a][b]");
  CHECK(literals("{% for k, v in messages[0].items() %}{{ k }}={{ v }};{% endfor %}", "x") ==
        "[role][user][content][x]");
  CHECK(literals("{% filter upper %}{{ " + m + " }}{% endfilter %}", "x") == "[X]");
  CHECK(literals("{{ " + m + " * 2 }}", "ab") == "[abab]");
}

TEST_CASE("tools and extra names are literal too, extra names win") {
  auto parsed = chat_template::parse("{{ tools[0].name }}|{{ mode }}|{{ bos_token }}", "<s>", "");
  REQUIRE(parsed.ok());
  template_input input{.messages = value_list{}};
  input.tools = value_list{value(value_object{{"name", "f"}})};
  input.extra = {{"mode", value("fast")}, {"bos_token", value("B")}};
  const auto p = parsed.value()->render(input).value();
  CHECK(p.text == "f|fast|B");
  CHECK(p.literal == byte_ranges{{0, 1}, {2, 6}, {7, 8}});
}

TEST_CASE("errors name the line, raise_exception's message comes through") {
  CHECK(error_of("a\n{% if %}").find("line 2") != std::string::npos);
  CHECK(error_of("a\nb\n{{ missing.x }}").find("line 3, 'missing' is undefined") !=
        std::string::npos);
  CHECK(error_of("\n{{ raise_exception('roles must alternate') }}") ==
        "chat template, line 2, roles must alternate");
  CHECK(error_of("{% for x in [1] %}\n{{ 1 / 0 }}{% endfor %}").find("line 2") !=
        std::string::npos);
}

TEST_CASE("errors name the message that the template was at") {
  const value messages = value_list{value_object{{"role", "user"}, {"content", "a"}},
                                    value_object{{"role", "assistant"}, {"content", nullptr}}};
  CHECK(error_of("{% for m in messages %}\n{{ m.content + '!' }}{% endfor %}", messages)
            .starts_with("chat template, line 2, messages[1], "));
  CHECK(error_of("{% for m in messages[1:] %}{{ raise_exception('no') }}{% endfor %}", messages) ==
        "chat template, line 1, messages[1], no");
  CHECK(error_of("{% for m in messages %}{% endfor %}{{ 1 / 0 }}", messages).find("messages[") ==
        std::string::npos);
}

TEST_CASE("messages are made to fit what the template expects") {
  const auto shown = [](const std::string& source, const char* messages) {
    auto made = chat_template::parse(source, "", "");
    REQUIRE(made.ok());
    auto done = made.value()->render(
        {.messages = made.value()->fit(twill::test::json_reader(messages).read_document())});
    INFO((done.ok() ? std::string() : done.detail()));
    REQUIRE(done.ok());
    return done.value().text;
  };
  const char* loop = R"([{"role":"developer","content":"d"},
    {"role":"assistant","content":null,"tool_calls":[{"id":"call_0123456789","type":"function",
      "function":{"name":"f","arguments":{"x":1}}}]},
    {"role":"tool","content":"r","tool_call_id":"call_0123456789"}])";
  const std::string head = "{% for m in messages %}{{ m.role }}:";
  const std::string call = "{% for c in m.tool_calls or [] %}{{ c.function.name }}";
  const std::string foot = "{% endfor %};{% endfor %}";
  // Plain ChatML concatenates content and text, and does not show calls.
  CHECK(shown(head + "{{ m.content + '' }};{% endfor %}", loop) ==
        R"(system:d;assistant:{"name":"f","arguments":{"x":1}};tool:r;)");
  // One template takes arguments as an object, a second one as JSON text.
  CHECK(shown(head + "{{ m.content + '' }}" + call + "{{ c.function.arguments | tojson }}" + foot,
              loop) == R"(system:d;assistant:f{"x": 1};tool:r;)");
  CHECK(shown(head + "{{ m.content + '' }}" + call + "{{ c.function.arguments + '' }}" + foot,
              loop) == R"(system:d;assistant:f{"x":1};tool:r;)");
  // A template that tests for null content, takes the developer role, and wants short ids.
  CHECK(shown("{# developer, length 9 #}" + head + "{% if m.content is none %}" + call +
                  "{{ c.function.arguments | tojson }}{{ c.id | length }}{% endfor %}{% endif %};"
                  "{% endfor %}",
              loop) == R"(developer:;assistant:f{"x": 1}9;tool:;)");
}

TEST_CASE("calls in the history keep what the client wrote") {
  const auto shown = [](const std::string& source, const std::string& call) {
    auto made = chat_template::parse(source, "", "").value();
    const auto messages = twill::test::parse_json(
        R"([{"role":"assistant","content":"","tool_calls":[)" + call + "]}]");
    const auto done = made->render({.messages = made->fit(messages)});
    return done.ok() ? done.value().text : done.detail();
  };
  const auto call_of = [](const std::string& id, const std::string& arguments) {
    return R"({"id":")" + id + R"(","type":"function","function":{"name":"f","arguments":)" +
           arguments + "}}";
  };
  const std::string loop = "{% for m in messages %}{% for c in m.tool_calls or [] %}";
  const std::string foot = "{% endfor %}{% endfor %}";
  const std::string takes_text = loop + "{{ c.function.arguments + '' }}" + foot;
  const std::string takes_objects = loop + "{{ c.function.arguments | tojson }}" + foot;
  const std::string spelled = R"("{\"b\" :1.50,\t\"a\":[ 1e2, \"\u00e9\"]}")";
  CHECK(shown(takes_text, call_of("c", spelled)) == "{\"b\" :1.50,\t\"a\":[ 1e2, \"é\"]}");
  CHECK(shown(takes_objects, call_of("c", spelled)) == R"({"b": 1.5, "a": [100.0, "é"]})");
  CHECK(shown(takes_text, call_of("c", R"({"b": 1})")) == R"({"b":1})");
  // A template that takes text and objects gets what the client sent.
  const std::string takes_either =
      loop + "{% set a = c.function.arguments %}{{ a if a is string else a | tojson }}" + foot;
  CHECK(shown(takes_either, call_of("c", R"("{\"b\" :1.50}")")) == R"({"b" :1.50})");
  CHECK(shown(takes_either, call_of("c", R"({"b" :1.50})")) == R"({"b": 1.5})");
  // Arguments that are not the text of a JSON object stay a text.
  for (const char* odd : {R"("{\"a\"")", R"("[1]")", R"("5")", R"("no JSON")"}) {
    INFO(odd);
    const std::string text = twill::test::text_of(twill::test::parse_json(odd));
    CHECK(shown(takes_text, call_of("c", odd)) == text);
    CHECK(shown(loop + "{{ c.function.arguments | tojson }}" + foot, call_of("c", odd)) ==
          twill::test::text_of(value(odd)));
  }
  // Ids that Mistral's template accepts are kept. Any other id always gets the same substitute.
  const std::string ids = "{# length 9 #}" + loop + "{{ c.id }}" + foot;
  CHECK(shown(ids, call_of("abc123xyz", "{}")) == "abc123xyz");
  CHECK(shown(ids, call_of("A1B2C3D4E", "{}")) == "A1B2C3D4E");
  for (const char* foreign : {"call_abc123xyz", "abc-23xyz", "abc123xy", "abc123xyz0", ""}) {
    INFO(foreign);
    const auto given = shown(ids, call_of(foreign, "{}"));
    CHECK(given.size() == 9);
    CHECK(given == shown(ids, call_of(foreign, "{}")));
    CHECK(given != foreign);
  }
  CHECK(shown(loop + "{{ c.id }}" + foot, call_of("call_abc123xyz", "{}")) == "call_abc123xyz");
}

TEST_CASE("tools are added to the messages of templates that do not show them") {
  const auto shown = [](const std::string& source, const char* messages) {
    auto made = chat_template::parse(source, "", "");
    REQUIRE(made.ok());
    auto done = made.value()->render(
        {.messages = made.value()->fit(twill::test::json_reader(messages).read_document(), "T")});
    INFO((done.ok() ? std::string() : done.detail()));
    REQUIRE(done.ok());
    return done.value().text;
  };
  const std::string loop = "{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}";
  const char* asked = R"([{"role":"user","content":"u"}])";
  const char* received = R"([{"role":"developer","content":"s"},{"role":"user","content":"u"}])";
  const char* answered = R"([{"role":"user","content":"u"},
    {"role":"assistant","content":"","tool_calls":[{"id":"c","type":"function",
      "function":{"name":"f","arguments":{}}}]},
    {"role":"tool","content":"r","tool_call_id":"c","name":"f"},
    {"role":"tool","content":"q","tool_call_id":"d"}])";
  CHECK(shown(loop, asked) == "system:T;user:u;");
  CHECK(shown(loop, received) == "system:s\n\nT;user:u;");
  CHECK(shown(loop, answered) ==
        R"(system:T;user:u;assistant:{"name":"f","arguments":{}};tool:r;tool:q;)");
  // If a template shows tools itself, no system message with the tools is added.
  CHECK(shown("{# tools #}" + loop, asked) == "user:u;");
  // A template whose two roles must take turns.
  const std::string strict =
      "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
      "{{ raise_exception('turns') }}{% endif %}{{ m.role }}:{{ m.content }};"
      "{% endfor %}";
  CHECK(shown(strict, asked) == "user:T\n\nu;");
  CHECK(shown(strict, answered) == R"(user:T

u;assistant:{"name":"f","arguments":{}};user:f returned:
r

The function returned:
q;)");
}

TEST_CASE("templates may change lists and dicts of their own") {
  CHECK(render("{% set l = [1] %}{% set _ = l.append(2) %}{{ l }}{{ l.pop() }}{{ l }}", "").text ==
        "[1, 2]2[1]");
  CHECK(render("{% set l = [3, 1] %}{% set _ = l.insert(1, 9) %}{% set _ = l.extend([4]) %}{{ l }}",
               "")
            .text == "[3, 9, 1, 4]");
  CHECK(render("{% set d = {'a': 1} %}{% set _ = d.update({'b': 2}) %}{{ d }}{{ d.pop('a') }}", "")
            .text == "{'a': 1, 'b': 2}1");
}

TEST_CASE("the sandbox ends templates that ask for too much") {
  const std::vector<std::string> greedy = {
      "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
      "{{ 'x' * 1000000000 }}",
      "{{ 'x' * 1000000000000000000 }}",
      "{{ [0] * 1000000000 }}",
      "{% set ns = namespace(s='xx') %}{% for i in range(60) %}{% set ns.s = ns.s ~ ns.s %}"
      "{% endfor %}{{ ns.s }}",
      "{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = ns.l + ns.l %}"
      "{% endfor %}",
      "{% set ns = namespace(l=['x']) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}"
      "{% endfor %}{{ ns.l }}",
      "{% set ns = namespace(l=[]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}"
      "{% endfor %}{{ ns.l|tojson }}",
      "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
      "{% macro f(x) %}{{ f([x]) ~ f([x]) }}{% endmacro %}{{ f(1) }}",
      "{% set l = [] %}{% set _ = l.append(l) %}{{ l }}",
      "{% set l = [] %}{% set _ = l.append(l) %}{{ l|tojson }}",
      "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
      "{% for i in range(100000) %}{{ 'y' * 1000 }}{% endfor %}",
      "{{ 'a'.replace('', 'x' * 1000000).replace('x', 'y' * 1000000) }}",
      "{{ '%1000000000d' % 1 }}",
      "{{ 'x'.center(100000000000) }}",
      "{{ 'x'|indent(1000000000) }}",
      "{{ range(100000000000)|list }}",
      "{{ 9223372036854775807 + 1 }}",
      "{{ 2 ** 100000000000 }}",
      "{{ (-9223372036854775807 - 1) // -1 }}",
      "{{ " + std::string(5000, '(') + "1" + std::string(5000, ')') + " }}",
      "{{ " + std::string(5000, '[') + "1" + std::string(5000, ']') + " }}",
      "{{ " + std::string(5000, '-') + "1 }}",
      "{{ 1" + std::string(5000, '+') + " }}",
  };
  for (const std::string& source : greedy) {
    CAPTURE(source.substr(0, 100));
    const std::clock_t begin = std::clock();
    error_of(source);
    // CPU time: about a second at most; sanitizers take ten times that.
    CHECK((std::clock() - begin) / CLOCKS_PER_SEC < 20);
  }
  std::string chain = "{{ 1", deep;
  for (int i = 0; i < 5000; ++i)
    chain += " + 1", deep += "{% if 1 %}";
  error_of(chain + " }}");
  error_of(deep);
}

TEST_CASE("a long conversation renders within the limits") {
  value_list messages;
  for (int i = 0; i < 4000; ++i)
    messages.push_back(value_object{{"role", i % 2 == 0 ? "user" : "assistant"},
                                    {"content", value(std::string(1000, 'x'))}});
  auto parsed = chat_template::parse("{% for m in messages %}{{ '<|' + m['role'] + '|>' + "
                                     "m['content']|trim + '\\n' }}{% endfor %}",
                                     "", "");
  auto done = parsed.value()->render({.messages = messages});
  REQUIRE(done.ok());
  CHECK(done.value().text.size() > 4'000'000);
  CHECK(done.value().literal.size() == 8000);
}

TEST_CASE("templates and requests in ill-formed UTF-8 are refused") {
  CHECK_FALSE(chat_template::parse("\xFF", "", "").ok());
  auto parsed = chat_template::parse("{{ messages[0].content }}", "", "");
  const auto done = parsed.value()->render({.messages = chat("\xC3")});
  REQUIRE_FALSE(done.ok());
  CHECK(done.code() == errc::template_failed);
}

TEST_CASE("random changes to templates never crash or hang", "[fuzz]") {
  const value golden = test::read_json_file(test::golden_dir() + "/jinja_cases.json");
  std::vector<std::string> seeds;
  for (const value& c : test::list_of(test::at(golden, "chats")))
    seeds.push_back(test::text_of(test::at(c, "template")));
  for (const value& c : test::list_of(test::at(golden, "expressions")))
    seeds.push_back(test::text_of(test::at(c, "template")));
  const char* pieces[] = {
      "{{",      "}}",    "{%",   "%}",     "-",        "|",     "(",      ")",
      "[",       "]",     "'",    "\\",     "for ",     " in ",  "if ",    "{% endif %}",
      "loop",    ".",     "~",    "*",      "**",       "99999", "[::-1]", "{% endfor %}",
      "|tojson", "|list", "set ", "macro ", "\xC3\xA9", "{#",    "#}",     " is "};
  std::mt19937 random(20240607);
  const auto pick = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
  const value_list conversation = chat("hi {{ <|im_end|> \xF0\x9F\x98\x80");
  int rendered = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string source = seeds[round % 8 == 0 ? pick(18) : pick(seeds.size())];
    for (std::size_t changes = 1 + pick(4); changes > 0; --changes) {
      const std::size_t at = pick(source.size() + 1);
      switch (pick(3)) {
      case 0:
        source.insert(at, pieces[pick(std::size(pieces))]);
        break;
      case 1:
        source.erase(at, 1 + pick(8));
        break;
      default: {
        const std::string& other = seeds[pick(seeds.size())];
        const std::size_t from = pick(other.size() + 1);
        source.insert(at, other.substr(from, pick(40)));
      }
      }
    }
    auto parsed = chat_template::parse(source, "<s>", "</s>");
    if (!parsed.ok()) continue;
    template_input input{.messages = conversation};
    input.extra = *test::at(golden, "variables").as_object();
    rendered += parsed.value()->render(input).ok() ? 1 : 0;
  }
  CHECK(rendered > 100);
}

TEST_CASE("a prompt ends where its last message does, for an answer that goes on from there") {
  // The prompt up to the end of `content`, or "none" if that end cannot be found.
  const auto cut = [](const std::string& source, const std::string& content) {
    rendered_prompt prompt = render(source, content);
    const rendered_prompt whole = prompt;
    if (!cut_after(content, prompt)) {
      CHECK(prompt.text == whole.text);
      CHECK(prompt.literal == whole.literal);
      return std::string("none");
    }
    REQUIRE(!prompt.literal.empty());
    CHECK(prompt.literal.back().second == prompt.text.size());
    return prompt.text;
  };
  CHECK(cut("<a>{{ " + m + " }}<b>", "so") == "<a>so");
  CHECK(cut("<a>{{ " + m + " + eos_token }}\n", "so</s>") == "<a>so</s>");
  CHECK(cut("<a>{{ " + m + " | trim }}<b>", " \n so") == "<a>so");
  CHECK(cut("<a>{{ " + m + " | trim }}<b>", "so \n") == "<a>so");
  CHECK(cut("<a>{{ " + m + " }}<b>", "so \n") == "<a>so \n");
  CHECK(cut("<a>{{ " + m + " | trim }}<b>", "\xC2\xA0so\xE2\x80\x83") ==
        "<a>so"); // as Python trims
  CHECK(cut("<a>{{ " + m + " }}<b>", " \xC2\xA0") == "none");
  CHECK(cut("<a>{{ " + m + " }}<b>{{ " + m + " }}<c>", "so") == "<a>so<b>so");
  CHECK(cut("<a>{{ " + m + ".split('</think>')[-1] }}<b>", "x</think>so") == "none");
  CHECK(cut("<a>{{ " + m + " }}<b>{{ messages[0].role }}", "so") == "none");
  CHECK(cut("<a>{{ " + m + " | length }}", "so") == "none");
  CHECK(cut("<a>{{ " + m + " }}<b>", "") == "none");
  CHECK(cut("<a>{{ " + m + " }}<b>", " ") == "none");
}
