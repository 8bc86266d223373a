#include "tools/common/cli_pages.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <string_view>

#include "tools/common/cli_completion.hpp"

namespace twill::tools {
namespace {

/// Escapes the text so that roff prints it literally. A line that begins with a dot or an
/// apostrophe would be a roff command, so "\&" is put before it.
std::string roff(std::string_view text) {
  std::string out;
  bool at_start = true;
  for (const char c : text) {
    if (at_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
    at_start = c == '\n';
  }
  return out;
}

/// Converts plain text to roff paragraphs, which empty lines separate.
std::string paragraphs(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto end = std::min(text.find("\n\n"), text.size());
    out += ".PP\n" + roff(text.substr(0, end)) + "\n";
    text.remove_prefix(std::min(end + 2, text.size()));
  }
  return out;
}

std::string upper(std::string text) {
  for (char& c : text)
    c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

/// The first sentence of a description in the form that the NAME section of a man page needs:
/// "serves a model" for "twilld serves a model. More."
std::string summary(const CLI::App& app) {
  auto text = app.get_description();
  text = text.substr(0, text.find(". "));
  if (text.ends_with('.')) text.pop_back();
  if (text.starts_with(app.get_name() + " ")) text.erase(0, app.get_name().size() + 1);
  // The first letter becomes lower case in "Measures" but not in "LLM servers".
  if (text.size() > 1 && std::islower(static_cast<unsigned char>(text[1])))
    text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

std::string options_text(const CLI::App& app) {
  std::string out;
  for (const auto& option : cli_options(app)) {
    std::string names;
    for (const auto& name : option.names)
      names += (names.empty() ? "\\fB" : ", \\fB") + roff(name) + "\\fR";
    if (!option.value.empty())
      names += (names.empty() ? "\\fI" : " \\fI") + roff(option.value) + "\\fR";
    out += ".TP\n" + names + "\n" + (option.description.empty() ? "\\&" : roff(option.description));
    if (!option.choices.empty()) {
      std::string list;
      for (const auto& choice : option.choices)
        list += (list.empty() ? "" : ", ") + choice;
      out += "\nOne of " + roff(list) + ".";
    }
    out += "\n";
  }
  return out;
}

std::string commands_text(const CLI::App& app, const std::string& prefix) {
  std::string out;
  for (const CLI::App* command : cli_commands(app)) {
    const auto name = prefix + command->get_name();
    out += ".SS \"" + roff(name) + "\"\n" + roff(command->get_description()) + "\n" +
           options_text(*command);
    if (const auto footer = command->get_footer(); !footer.empty()) out += paragraphs(footer);
    out += commands_text(*command, name + " ");
  }
  return out;
}

} // namespace

std::string man_page(const CLI::App& app, const std::vector<man_section>& sections) {
  const auto& name = app.get_name();
  const bool daemon = name == "twilld";
  const bool has_commands = !cli_commands(app).empty();
  std::string out = ".\\\" Written by " + name + " --print-man.\n.TH " + roff(upper(name)) +
                    (daemon ? " 8" : " 1") + " \"\" \"twill " TWILL_VERSION "\" \"" +
                    (daemon ? "System Administration" : "User Commands") + "\"\n";
  out += ".SH NAME\n" + roff(name) + " \\- " + roff(summary(app)) + "\n";
  out += ".SH SYNOPSIS\n.B " + roff(name) + "\n" +
         (has_commands ? "[\\fIOPTIONS\\fR] \\fICOMMAND\\fR [\\fIARGUMENTS\\fR]\n"
                       : "[\\fIOPTIONS\\fR]\n");
  out += ".SH DESCRIPTION\n" + roff(app.get_description()) + "\n";
  out += ".SH OPTIONS\n" + options_text(app);
  if (has_commands) out += ".SH COMMANDS\n" + commands_text(app, "");
  for (const auto& section : sections)
    out += ".SH \"" + roff(section.title) + "\"\n" + paragraphs(section.text);
  if (const auto footer = app.get_footer(); !footer.empty())
    out += ".SH NOTES\n" + paragraphs(footer);
  std::string others;
  for (const auto* page : {"twill(1)", "twill-bench(1)", "twill-synth(1)", "twilld(8)"})
    if (!std::string_view(page).starts_with(name + "("))
      others +=
          (others.empty() ? "" : ",\n") + (".BR " + roff(page).insert(roff(page).find('('), " "));
  return out + ".SH SEE ALSO\n" + others + "\n";
}

bool print_pages(const CLI::App& app, int argc, const char* const* argv,
                 const std::vector<man_section>& sections) {
  const std::string_view asked = argc > 1 ? argv[1] : "";
  std::string text;
  if (asked == "--print-man" && argc == 2) text = man_page(app, sections);
  if (asked == "--print-completion" && argc == 3) text = completion_script(app, argv[2]);
  std::fputs(text.c_str(), stdout);
  return !text.empty();
}

} // namespace twill::tools
