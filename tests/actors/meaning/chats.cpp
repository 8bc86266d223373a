#include "tests/actors/meaning/chats.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

#include "config/base/json_text.hpp"
#include "models/text/template_sources.hpp"
#include "tests/support/operations.hpp"

namespace twill::test {
namespace {

using choice_kind = actors::tool_choice_kind;

/// A text that a template must contain so that calls in this format are parsed.
struct format_hint {
  const char* format;
  const char* hint;
};
constexpr std::array hints = {format_hint{"hermes", "<tool_call>"},
                              format_hint{"mistral", "[TOOL_CALLS]"},
                              format_hint{"json", ""},
                              format_hint{"llama3_json", "<|python_tag|>"},
                              format_hint{"chatglm3", "<|observation|>"},
                              format_hint{"mistral", "[TOOL_CALLS][ARGS]"}};

/// The tag is spelled in two pieces, so that the template's text does not contain it.
constexpr const char* body =
    "{% if tools %}{% for t in tools %}({{ t.function.name }}){% endfor %}{% endif %}"
    "{% for m in messages %}{{ eos_token }}{{ m.role[0] }}{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}{{ eos_token }}a{% endif %}{% if loud %}{{ loud }}{% endif %}"
    "{% if think == 1 %}{{ '<' + 'think>' }}{% elif think == 2 %}{{ '<' + 'think></' + 'think>' }}"
    "{% endif %}";

std::shared_ptr<const models::chat_template> parsed(const std::string& begin, const char* hint,
                                                    bool thinks, const std::string& turn) {
  const std::string source = begin + "{# " + hint + (thinks ? " <think>" : "") + " #}" + body;
  auto made = models::chat_template::parse(source, "", turn);
  demand(made.ok(), made.ok() ? "" : "a template: " + made.detail());
  return std::move(made).value();
}

answer_style style_with(const format_hint& hint, bool thinks) {
  answer_style style{models::tool_calls::format_named(hint.format), thinks};
  style.calls->bare_names = std::string(hint.hint).find("[ARGS]") != std::string::npos;
  return style;
}

std::string text_of(const value& of, const char* member) {
  const value* found = of.find(member);
  return found != nullptr && found->as_string() != nullptr ? *found->as_string() : std::string();
}

const actors::chat_prompt& chat_of(const actors::request& asked) {
  return std::get<actors::chat_prompt>(asked.prompt);
}

bool shows_tools(const actors::request& asked) {
  const auto* list = chat_of(asked).tools.as_list();
  return asked.tools.kind != choice_kind::none && list != nullptr && !list->empty();
}

std::string day_of(std::int64_t unix_s) {
  const std::time_t seconds = unix_s;
  std::tm parts{};
  localtime_r(&seconds, &parts);
  char text[16];
  std::strftime(text, sizeof text, "%y%j", &parts);
  return text;
}

} // namespace

chat_styles give_templates(models::model& to, std::size_t number) {
  chat_styles made;
  made.turn = to.text->token_bytes(to.text->eos_id(), true);
  if (made.turn.empty()) made.turn = "|";
  const auto& main = hints.at(number % hints.size());
  const auto& other = hints.at((number + 1) % hints.size());
  const bool thinks = number % 4 < 2;
  made.main = style_with(main, thinks);
  made.with_tools = style_with(main, number % 4 > 0);
  made.dated = style_with(other, false);
  to.chat = parsed("M", main.hint, made.main.thinks, made.turn);
  to.other_chats = {
      {"dated", parsed("{{ strftime_now('%y%j') }}", other.hint, false, made.turn)},
      {models::tool_template_name, parsed("T", main.hint, made.with_tools.thinks, made.turn)}};
  return made;
}

const answer_style& style_of(const chat_styles& styles, const actors::request& asked) {
  if (!std::holds_alternative<actors::chat_prompt>(asked.prompt)) return styles.main;
  const std::string& name = chat_of(asked).template_name;
  if (name == "dated") return styles.dated;
  return name.empty() && shows_tools(asked) ? styles.with_tools : styles.main;
}

written_chat write_chat(const chat_styles& styles, const actors::request& asked) {
  const auto& chat = chat_of(asked);
  written_chat out;
  const auto literal = [&out](const std::string& text) {
    if (!text.empty()) out.literal.emplace_back(out.text.size(), out.text.size() + text.size());
    out.text += text;
  };
  const answer_style& style = style_of(styles, asked);
  out.text = &style == &styles.dated        ? day_of(chat.now_unix_s)
             : &style == &styles.with_tools ? "T"
                                            : "M";
  for (const small_tool& tool : tools_of(asked)) {
    out.text += "(";
    literal(tool.name);
    out.text += ")";
  }
  for (const value& message : *chat.messages.as_list()) {
    out.text += styles.turn;
    const std::string role = text_of(message, "role");
    literal(role == "developer" ? "s" : role.substr(0, 1)); // the template has no developer role
    literal(text_of(message, "content"));
  }
  if (chat.add_generation_prompt) out.text += styles.turn + "a";
  for (const auto& [name, given] : chat.template_arguments) {
    if (name == "loud") literal(*given.as_string());
    if (name == "think") out.text += given == value(1) ? "<think>" : "<think></think>";
  }
  return out;
}

actors::chat_prompt newest_turns_of(const chat_styles& styles, const models::tokenizer& text,
                                    const actors::request& asked, std::size_t most) {
  auto tried = asked;
  auto& chat = std::get<actors::chat_prompt>(tried.prompt);
  for (;;) {
    const auto written = write_chat(styles, tried);
    if (text.encode_prompt(written.text, written.literal).value().size() <= most) return chat;
    // Drop the oldest turn: all but system messages, up to the second message of the user.
    value_list kept;
    int n_users = 0;
    for (const value& message : *chat.messages.as_list()) {
      const std::string role = text_of(message, "role");
      n_users += role == "user" ? 1 : 0;
      if (n_users > 1 || role == "system" || role == "developer") kept.push_back(message);
    }
    if (n_users < 2) return chat;
    chat.messages = kept;
  }
}

std::vector<small_tool> tools_of(const actors::request& asked) {
  std::vector<small_tool> out;
  if (!std::holds_alternative<actors::chat_prompt>(asked.prompt) || !shows_tools(asked)) return out;
  for (const value& tool : *chat_of(asked).tools.as_list()) {
    const value& function = *tool.find("function");
    const value& takes = *function.find("parameters");
    out.push_back({text_of(function, "name"), takes.is_null() ? "" : to_json(takes)});
  }
  return out;
}

namespace {

value any_schema(std::uint32_t number) {
  if (number % 3 == 0) return {};
  value_object properties{{"a", value_object{{"type", "boolean"}}}};
  if (number % 3 == 2)
    properties = {{"w", value_object{{"enum", value_list{"x", "yy", 3}}}},
                  {"k", value_object{{"type", "integer"}}}};
  const std::string first = properties.front().first;
  return value_object{{"type", "object"},
                      {"properties", std::move(properties)},
                      {"required", value_list{first}},
                      {"additionalProperties", false}};
}

class chat_maker {
public:
  chat_maker(std::mt19937& random, const chat_styles& styles, const models::tokenizer& text)
      : random_(random), styles_(styles), text_(text) {}

  void make(std::size_t longest, std::int32_t context, actors::request& asked) {
    actors::chat_prompt chat;
    if (below(3) != 0) add_tools(chat, asked);
    if (below(6) == 0) {
      chat.template_name = "dated";
      chat.now_unix_s = 1'000'000'000 + std::int64_t{86'400} * below(9000);
    } else if (below(6) == 0) {
      chat.template_name = models::default_template_name;
    }
    if (below(4) == 0) chat.template_arguments.emplace_back("loud", words());
    if (const auto think = below(6); think < 2)
      chat.template_arguments.emplace_back("think", static_cast<int>(1 + think));
    chat.add_generation_prompt = below(5) != 0;
    value_list messages;
    if (below(3) == 0) messages.push_back(said(below(2) == 0 ? "system" : "developer"));
    for (auto n = 1 + below(6); n > 0; --n) {
      messages.push_back(said("user"));
      if (n > 1) messages.push_back(said("assistant"));
      if (n > 1 && below(3) == 0) messages.push_back(said("tool"));
      if (n > 1 && below(4) == 0) messages.push_back(said(below(2) == 0 ? "system" : "developer"));
    }
    chat.messages = messages;
    asked.prompt = chat;
    fit(longest, asked);
    // Sometimes give a longer prompt than there is room for, so that turns are left out.
    auto& kept = std::get<actors::chat_prompt>(asked.prompt);
    if (below(3) != 0) return;
    kept.drop_turns_for_output =
        context - static_cast<std::int32_t>(longest) + static_cast<std::int32_t>(below(6));
    auto longer = asked;
    std::get<actors::chat_prompt>(longer.prompt).messages = messages;
    const std::size_t room = static_cast<std::size_t>(context - kept.drop_turns_for_output);
    if (size_of_newest(longer, room) <= room)
      asked = longer;
    else
      kept.drop_turns_for_output = -1;
  }

private:
  std::uint32_t below(std::size_t n) { return random_() % static_cast<std::uint32_t>(n); }
  std::string words() {
    std::string text;
    for (auto n = below(7); n > 0; --n)
      text += "etaoin <{,."[below(11)];
    // The text of a control token is plain text in a message.
    return below(8) == 0 ? text + styles_.turn : text;
  }
  value said(const char* role) { return value_object{{"role", role}, {"content", words()}}; }

  void add_tools(actors::chat_prompt& chat, actors::request& asked) {
    static constexpr std::array names = {"get", "set_it", "go"};
    value_list tools;
    const std::size_t n = 1 + below(names.size());
    for (std::size_t i = 0; i < n; ++i) {
      value_object function{{"name", names.at(i)}, {"parameters", any_schema(below(3))}};
      tools.push_back(value_object{{"type", "function"}, {"function", std::move(function)}});
    }
    asked.tools.kind = std::array{choice_kind::automatic, choice_kind::none, choice_kind::required,
                                  choice_kind::named}[below(4)];
    if (asked.tools.kind == choice_kind::named) asked.tools.name = names.at(below(tools.size()));
    asked.tools.parallel = below(2) == 0;
    chat.tools = tools;
  }

  std::size_t size_of_newest(const actors::request& asked, std::size_t most) const {
    auto cut = asked;
    cut.prompt = newest_turns_of(styles_, text_, asked, most);
    const auto written = write_chat(styles_, cut);
    return text_.encode_prompt(written.text, written.literal).value().size();
  }

  /// Leaves out messages, and then their text, until the prompt is short enough.
  void fit(std::size_t longest, actors::request& asked) const {
    auto& chat = std::get<actors::chat_prompt>(asked.prompt);
    chat = newest_turns_of(styles_, text_, asked, longest);
    if (size_of_newest(asked, longest) <= longest) return;
    chat.messages = value_list{value_object{{"role", "user"}, {"content", "e"}}};
    chat.template_arguments.clear();
  }

  std::mt19937& random_;
  const chat_styles& styles_;
  const models::tokenizer& text_;
};

} // namespace

void take_chat(std::mt19937& random, const chat_styles& styles, const models::tokenizer& text,
               std::size_t longest, std::int32_t context, actors::request& asked) {
  chat_maker(random, styles, text).make(longest, context, asked);
}

} // namespace twill::test
