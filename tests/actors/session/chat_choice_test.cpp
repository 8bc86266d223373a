// Which of a model's chat templates a chat gets, and that its answer is parsed in the format which
// that template implies.
#include "actors/session/chat_choice.hpp"

#include <memory>
#include <string>
#include <vector>

#include "actors/session/output_plan.hpp"
#include "actors/session/prompt.hpp"
#include "tests/actors/engine_fixture.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "tests/support/json.hpp"

using namespace twill::actors;
using twill::value;
using twill::value_list;
using twill::value_object;
namespace models = twill::models;

namespace {

std::shared_ptr<const models::chat_template> parsed(const std::string& source) {
  return models::chat_template::parse(source, "", "").value();
}

/// A model with these templates, of which the one named "default" is its default.
std::shared_ptr<const served_model>
model_with(const std::vector<std::pair<std::string, std::string>>& templates) {
  auto files = std::make_shared<models::model>();
  files->text = std::make_shared<scripted::byte_tokenizer>();
  for (const auto& [name, source] : templates) {
    if (name == "default")
      files->chat = parsed(source);
    else
      files->other_chats.push_back({name, parsed(source)});
  }
  return make_served_text({}, files, 4096);
}

value tools() {
  return value_list{
      value_object{{"type", "function"}, {"function", value_object{{"name", "look"}}}}};
}

chat_prompt chat_with(bool with_tools, std::string name = {}) {
  chat_prompt chat;
  chat.messages = value_list{value_object{{"role", "user"}, {"content", "hi"}}};
  if (with_tools) chat.tools = tools();
  chat.template_name = std::move(name);
  return chat;
}

/// The source of the chosen template, or null.
value chosen(const served_model& model, const chat_prompt& chat) {
  const auto choice = choose_chat(model, chat);
  return choice.ok() ? value(choice.value().chat->source()) : value();
}

} // namespace

TEST_CASE("a chat gets the template that transformers chooses", "[golden]") {
  const value golden =
      twill::test::read_json_file(twill::test::golden_dir() + "/chat/template_files.json");
  for (const value& one : twill::test::list_of(*golden.find("cases"))) {
    INFO(twill::test::text_of(*one.find("name")));
    std::vector<std::pair<std::string, std::string>> templates;
    for (const auto& [name, source] : *one.find("loaded")->as_object())
      templates.emplace_back(name, twill::test::text_of(source));
    const auto model = model_with(templates);
    const value& expected = *one.find("chosen");
    CHECK(chosen(*model, chat_with(false)) == *expected.find("plain"));
    CHECK(chosen(*model, chat_with(true)) == *expected.find("tools"));
    CHECK(chosen(*model, chat_with(true, "rag")) == *expected.find("rag"));
  }
}

TEST_CASE("a chat that names a template gets it, whatever its tools") {
  const auto model = model_with({{"default", "d"}, {"tool_use", "t"}, {"rag", "r"}});
  CHECK(chosen(*model, chat_with(true, "default")) == value("d"));
  CHECK(chosen(*model, chat_with(false, "tool_use")) == value("t"));
  chat_prompt no_tools = chat_with(false);
  no_tools.tools = value_list{};
  CHECK(chosen(*model, no_tools) == value("d"));
  const auto unknown = choose_chat(*model, chat_with(false, "news"));
  REQUIRE_FALSE(unknown.ok());
  CHECK(unknown.code() == errc::invalid_argument);
  CHECK(unknown.detail() == "`chat_template` must be the name of a template of the model "
                            "(default, tool_use, rag), got \"news\"");
  const auto headless = model_with({{"tool_use", "t"}});
  const auto none = choose_chat(*headless, chat_with(false));
  REQUIRE_FALSE(none.ok());
  CHECK(none.code() == errc::no_chat_template);
  CHECK(none.detail().find("tool_use") != std::string::npos);
}

TEST_CASE("an answer is read in the format of the template that made its prompt") {
  const auto model = model_with({{"default", "plain {{ messages[0].content }}"},
                                 {"tool_use", "tools {{ messages[0].content }} [TOOL_CALLS]"},
                                 {"think", "{{ tools }} <think> <tool_call>"}});
  const auto format_of = [&](const chat_prompt& chat) {
    request asked;
    asked.prompt = chat;
    asked.parse_output = true;
    const auto plan = plan_output(*model, asked, "");
    REQUIRE(plan.ok());
    return std::pair(plan.value().reading.calls ? plan.value().reading.calls->name : "none",
                     plan.value().reading.thoughts.has_value());
  };
  CHECK(render_chat(*model, chat_with(true)).value().text == "tools hi [TOOL_CALLS]");
  CHECK(format_of(chat_with(true)) == std::pair(std::string("mistral"), false));
  CHECK(format_of(chat_with(true, "think")) == std::pair(std::string("hermes"), true));
  CHECK(format_of(chat_with(false)) == std::pair(std::string("none"), false));
  // The default template cannot render tools, so they are put into the text.
  const auto received = render_chat(*model, chat_with(true, "default"));
  REQUIRE(received.ok());
  CHECK(received.value().text.find("\"name\":\"look\"") != std::string::npos);
  CHECK(format_of(chat_with(true, "default")) == std::pair(std::string("json"), false));
}
