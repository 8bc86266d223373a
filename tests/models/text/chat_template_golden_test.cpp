#include <string>

#include "models/text/chat_template.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "tests/support/json.hpp"

using namespace twill;
using namespace twill::models;
using test::at;
using test::text_of;

namespace {

struct outcome {
  bool ok;
  std::string text; ///< the rendered text, or that of the error
};

outcome run(const std::string& source, const template_input& input) {
  auto parsed = chat_template::parse(source, "<s>", "</s>");
  if (!parsed.ok()) {
    CHECK(parsed.code() == errc::bad_template);
    return {false, parsed.detail()};
  }
  auto done = parsed.value()->render(input);
  if (!done.ok()) {
    CHECK(done.code() == errc::template_failed);
    return {false, done.detail()};
  }
  return {true, done.value().text};
}

void check(const outcome& rendered, const value& expected) {
  const value* text = expected.find("text");
  INFO("got " << (rendered.ok ? "text: " : "failure: ") << rendered.text);
  if (text == nullptr) {
    INFO("expected failure: " << text_of(at(expected, "message")));
    CHECK_FALSE(rendered.ok);
    return;
  }
  INFO("expected: " << text_of(*text));
  CHECK(rendered.ok);
  CHECK(rendered.text == text_of(*text));
}

const value& golden() {
  static const value file = test::read_json_file(test::golden_dir() + "/jinja_cases.json");
  return file;
}

value chat(const std::string& name) {
  return test::read_json_file(test::golden_dir() + "/" + name + ".json");
}

} // namespace

TEST_CASE("expressions and statements render as Jinja2 renders them", "[golden]") {
  template_input input;
  input.extra = *at(golden(), "variables").as_object();
  for (const value& c : test::list_of(at(golden(), "expressions"))) {
    INFO("template: " << text_of(at(c, "template")));
    check(run(text_of(at(c, "template")), input), c);
  }
}

TEST_CASE("chat templates of many families render as Jinja2 renders them", "[golden]") {
  const value& conversations = at(golden(), "conversations");
  for (const value& family : test::list_of(at(golden(), "chats"))) {
    for (const value& c : test::list_of(at(family, "outputs"))) {
      const value& given = at(conversations, text_of(at(c, "input")));
      template_input input;
      input.messages = at(given, "messages");
      input.add_generation_prompt = *at(c, "add_generation_prompt").as_bool();
      for (const auto& [name, member] : *given.as_object()) {
        if (name == "tools")
          input.tools = member;
        else if (name != "messages")
          input.extra.emplace_back(name, member);
      }
      INFO(text_of(at(family, "name")) << " / " << text_of(at(c, "input")));
      check(run(text_of(at(family, "template")), input), c);
    }
  }
}

TEST_CASE("published templates render the reference prompts", "[golden]") {
  for (const char* name : {"smollm2/chat", "chat/mistral-openorca"}) {
    const value file = chat(name);
    for (const auto& [key, c] : *at(file, "cases").as_object()) {
      INFO(name << " / " << key);
      check(run(text_of(at(file, "template")), {.messages = at(c, "messages")}), c);
    }
  }
}

TEST_CASE("Mistral's instruction templates render the reference prompts", "[golden]") {
  const value file = chat("chat/mistral-instruct");
  for (const auto& [key, c] : *at(file, "cases").as_object()) {
    for (const std::string version : {"v1", "v2"}) {
      INFO(version << " / " << key);
      const value* text = c.find("text_" + version);
      const bool fails = text == nullptr || text->is_null();
      const outcome rendered = run(text_of(at(file, "template_" + version)),
                                   {.messages = at(c, "messages"), .add_generation_prompt = false});
      CHECK(rendered.ok == !fails);
      if (!fails) CHECK(rendered.text == text_of(*text));
    }
  }
}
