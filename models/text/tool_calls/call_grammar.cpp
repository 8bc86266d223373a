#include "models/text/tool_calls/call_grammar.hpp"

#include <cstdio>

namespace twill::models::tool_calls {
namespace {

std::string json_string(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    char code[8];
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
      out += code;
    } else {
      out += c;
    }
  }
  return out + '"';
}

/// Returns the schema of a tool's arguments. A tool that declares no parameters takes no arguments.
std::string arguments_of(const callable& tool) {
  return tool.parameters.empty() ? R"({"type": "object", "maxProperties": 0})" : tool.parameters;
}

} // namespace

std::optional<config::grammar_spec> call_grammar(const tool_format& format,
                                                 std::span<const callable> tools, bool parallel) {
  config::grammar_spec out;
  out.kind = config::grammar_kind::framed;
  out.repeated = parallel;
  std::string begin, end;
  switch (format.syntax) {
  case call_syntax::chatglm3:
    // The parser of this format accepts no other names (parser.cpp).
    for (const auto& tool : tools)
      if (tool.name.find_first_of(":/") != std::string::npos) return std::nullopt;
    out.repeated = false;
    out.as_arguments = true;
    for (const auto& tool : tools)
      out.frames.push_back({tool.name + "\n ```python\ntool_call(", arguments_of(tool), "\n```"});
    return out;
  case call_syntax::tagged_json:
    begin = format.begin + "\n";
    end = "\n" + format.end;
    out.list_between = "\n";
    break;
  case call_syntax::listed_json:
    if (format.bare_names) {
      for (const auto& tool : tools)
        out.frames.push_back({format.begin + tool.name + format.arguments,
                              tool.parameters.empty() ? R"({"type": "object"})" : tool.parameters,
                              ""});
      return out;
    }
    out.list_begin = format.begin + " [";
    out.list_between = ", ";
    out.list_end = "]";
    break;
  default: // bare JSON
    if (format.begin.empty() && parallel) {
      out.list_begin = "[";
      out.list_end = "]";
    }
    out.list_between = format.begin.empty() ? ", " : "; ";
    break;
  }
  const std::string key = format.name == "llama3_json" ? "parameters" : "arguments";
  for (const auto& tool : tools)
    out.frames.push_back({begin + "{\"name\": " + json_string(tool.name) + ", \"" + key + "\": ",
                          arguments_of(tool), "}" + end});
  return out;
}

} // namespace twill::models::tool_calls
