#include "tools/common/cli_completion.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <string_view>

#include "tools/common/cli_pages.hpp"

namespace twill::tools {
namespace {

/// Splits "a,b" or "a, b" or "a->1,b->2" into the names a and b.
std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> parts;
  while (!list.empty()) {
    const auto end = std::min(list.find(','), list.size());
    auto part = list.substr(0, end);
    part.remove_prefix(std::min(part.find_first_not_of(' '), part.size()));
    part = part.substr(0, part.find("->"));
    if (!part.empty()) parts.emplace_back(part);
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return parts;
}

/// The name of a value's type without the restrictions that CLI11 appends to it, as in
/// "TEXT:{a,b}".
std::string without_rules(const std::string& type) {
  auto end = type.size();
  for (const auto* rule : {":{", ":FILE", ":DIR", ":PATH", ":INT", ":UINT", ":FLOAT", ":POSITIVE",
                           ":NONNEGATIVE", ":NUMBER"})
    end = std::min(end, type.find(rule));
  return type.substr(0, end);
}

bool names_a_path(const std::string& type) {
  for (const auto* word : {"FILE", "PATH", "FOLDER", "DIR", ".json", ".toml"})
    if (type.find(word) != std::string::npos) return true;
  return false;
}

/// A command of the program, with its full name such as "models pull" and its definition.
struct node {
  std::string path; ///< empty for the program itself
  const CLI::App* app;
};

void walk(const CLI::App& app, const std::string& path, std::vector<node>& into) {
  into.push_back({path, &app});
  for (const auto* command : cli_commands(app))
    walk(*command, path.empty() ? command->get_name() : path + " " + command->get_name(), into);
}

std::vector<node> tree(const CLI::App& app) {
  std::vector<node> nodes;
  walk(app, "", nodes);
  return nodes;
}

/// Puts the text into single quotes in the way that each of the supported shells reads.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text)
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/// Puts the text into single quotes for the fish shell. Within single quotes, fish reads \' as a
/// quote and \\ as a backslash.
std::string fish_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text)
    out += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return out + "'";
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& word : words)
    out += (out.empty() ? "" : " ") + word;
  return out;
}

/// The first sentence of `text`.
std::string brief(const std::string& text) {
  return text.substr(0, std::min(text.find_first_of(";\n"), text.find(". ")));
}

/// Turns a name into the name of a shell function: letters, digits and underscores.
std::string identifier(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return "_" + name;
}

std::string all_names(const CLI::App& app) {
  std::string words;
  for (const auto* command : cli_commands(app))
    words += command->get_name() + " ";
  for (const auto& option : cli_options(app))
    for (const auto& name : option.names)
      words += name + " ";
  if (!words.empty()) words.pop_back();
  return words;
}

/// The patterns for the script's `case "$command $word"` that match when `$word` is a sub-command
/// of `$command`, such as "models pull", or " chat" while `$command` is still empty.
std::string command_patterns(const std::vector<node>& nodes) {
  std::string out;
  for (const auto& one : nodes)
    if (!one.path.empty())
      out += (out.empty() ? "" : " | ") +
             quoted(one.path.find(' ') == std::string::npos ? " " + one.path : one.path);
  return out;
}

/// The shell code in which the completion scripts of bash and zsh differ. Both scripts walk through
/// the words of the command line in the same way, but offer words and files by different commands.
struct dialect {
  const char* words;    ///< the command that offers the words after it
  const char* files;    ///< a command that offers files
  const char* previous; ///< the word before the one being completed
};

std::string value_cases(const std::vector<node>& nodes, const dialect& shell) {
  std::string out = "  case \"$command " + std::string(shell.previous) + "\" in\n";
  for (const auto& one : nodes)
    for (const auto& option : cli_options(*one.app)) {
      if (option.value.empty() || option.names.empty()) continue;
      std::string patterns;
      for (const auto& name : option.names)
        patterns += (patterns.empty() ? "" : " | ") + quoted(one.path + " " + name);
      std::string action = ":";
      if (!option.choices.empty())
        action = std::string(shell.words) + " " + joined(option.choices);
      else if (option.takes_path)
        action = shell.files;
      out += "    " + patterns + ") " + action + "; return ;;\n";
    }
  return out + "    ' '*) ;;\n  esac\n";
}

std::string step_through(const std::vector<node>& nodes, const char* words) {
  const auto patterns = command_patterns(nodes);
  if (patterns.empty()) return "";
  return "  for word in " + std::string(words) + "; do\n    case \"$command $word\" in\n      " +
         patterns + ") command=\"${command:+$command }$word\" ;;\n    esac\n  done\n";
}

std::string bash_script(const CLI::App& app) {
  const auto nodes = tree(app);
  const auto function = identifier(app.get_name());
  const dialect bash{"_twill_words", "_twill_files", "$previous"};
  std::string out =
      "# bash completion for " + app.get_name() + ", written by `" + app.get_name() +
      " --print-completion bash`\n" + function + "() {\n" +
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
      "  local command= word words=\n"
      "  _twill_words() { mapfile -t COMPREPLY < <(compgen -W \"$*\" -- \"$current\"); }\n"
      "  _twill_files() { compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < "
      "<(compgen -f -- \"$current\"); }\n"
      "  COMPREPLY=()\n";
  out += step_through(nodes, "\"${COMP_WORDS[@]:1:COMP_CWORD-1}\"");
  out += value_cases(nodes, bash);
  out += "  case \"$command\" in\n";
  for (const auto& one : nodes)
    out += "    " + quoted(one.path) + ") words=" + quoted(all_names(*one.app)) + " ;;\n";
  out += "  esac\n";
  out += "  _twill_words \"$words\"\n"
         "  if [ ${#COMPREPLY[@]} = 0 ] && [[ $current != -* ]]; then _twill_files; fi\n"
         "}\ncomplete -F " +
         function + " " + app.get_name() + "\n";
  return out;
}

/// "name:description", as zsh's _describe takes it. Colons in the name are escaped, because a colon
/// ends the name.
std::string described(const std::string& name, const std::string& what) {
  return quoted(name + ":" + brief(what));
}

std::string zsh_script(const CLI::App& app) {
  const auto nodes = tree(app);
  const auto function = identifier(app.get_name());
  const dialect zsh{"compadd --", "_files", "${words[CURRENT-1]}"};
  std::string out = "#compdef " + app.get_name() + "\n# Written by `" + app.get_name() +
                    " --print-completion zsh`.\n" + function +
                    "() {\n  local command= word\n  local -a commands options\n";
  out += step_through(nodes, "\"${(@)words[2,CURRENT-1]}\"");
  out += value_cases(nodes, zsh);
  out += "  case \"$command\" in\n";
  for (const auto& one : nodes) {
    out += "    " + quoted(one.path) + ")\n      commands=(\n";
    for (const auto* command : cli_commands(*one.app))
      out += "        " + described(command->get_name(), command->get_description()) + "\n";
    out += "      )\n      options=(\n";
    for (const auto& option : cli_options(*one.app))
      for (const auto& name : option.names)
        out += "        " + described(name, option.description) + "\n";
    out += "      ) ;;\n";
  }
  out += "  esac\n"
         "  if [[ ${words[CURRENT]} == -* ]]; then\n"
         "    _describe -o option options\n"
         "  elif (( $#commands )); then\n"
         "    _describe command commands\n"
         "  else\n"
         "    _files\n"
         "  fi\n}\n" +
         function + " \"$@\"\n";
  return out;
}

/// The fish condition under which a command's own options are offered: for `models pull`, both
/// words must be on the command line.
std::string fish_condition(const node& one) {
  if (one.path.empty()) return cli_commands(*one.app).empty() ? "" : " -n __fish_use_subcommand";
  std::string seen;
  std::string_view rest = one.path;
  while (!rest.empty()) {
    const auto end = std::min(rest.find(' '), rest.size());
    seen += (seen.empty() ? "" : "; and ") + std::string("__fish_seen_subcommand_from ") +
            std::string(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return " -n '" + seen + "'";
}

std::string fish_script(const CLI::App& app) {
  std::string out = "# fish completion for " + app.get_name() + ", written by `" + app.get_name() +
                    " --print-completion fish`\n";
  for (const auto& one : tree(app)) {
    const auto line = "complete -c " + app.get_name() + fish_condition(one);
    for (const auto* command : cli_commands(*one.app))
      out += line + " -f -a " + fish_quoted(command->get_name()) + " -d " +
             fish_quoted(brief(command->get_description())) + "\n";
    for (const auto& option : cli_options(*one.app)) {
      if (option.names.empty()) continue;
      std::string names;
      for (const auto& name : option.names)
        names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      std::string takes;
      if (!option.choices.empty())
        takes = " -x -a " + fish_quoted(joined(option.choices));
      else if (!option.value.empty())
        takes = option.takes_path ? " -r -F" : " -x";
      out += line + names + takes + " -d " + fish_quoted(brief(option.description)) + "\n";
    }
  }
  return out;
}

} // namespace

std::vector<cli_option> cli_options(const CLI::App& app) {
  std::vector<cli_option> all;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue; // hidden
    cli_option one;
    for (const auto& name : option->get_snames())
      one.names.push_back("-" + name);
    for (const auto& name : option->get_lnames())
      one.names.push_back("--" + name);
    one.description = option->get_description();
    if (option->get_items_expected_max() > 0) {
      const auto type = option->get_type_name();
      one.value = without_rules(type);
      one.takes_path = names_a_path(type);
      if (const auto open = type.find('{'); open != type.npos && type.find('}') > open)
        one.choices = split(std::string_view(type).substr(open + 1, type.find('}') - open - 1));
      if (one.names.empty()) one.value = option->get_name(true);
      if (one.value.empty()) one.value = "VALUE";
    }
    all.push_back(std::move(one));
  }
  return all;
}

std::vector<const CLI::App*> cli_commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) {
    return !command->get_name().empty() && !command->get_group().empty();
  });
}

std::string completion_script(const CLI::App& app, const std::string& shell) {
  if (shell == "bash") return bash_script(app);
  if (shell == "zsh") return zsh_script(app);
  return shell == "fish" ? fish_script(app) : "";
}

} // namespace twill::tools
