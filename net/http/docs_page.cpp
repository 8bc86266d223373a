#include "net/http/docs_page.hpp"

#include <array>
#include <string_view>

#include "net/http/openapi.hpp"
#include "net/http/operations.hpp"

namespace twill::net {
namespace {

struct guide {
  std::string_view file;
  std::string_view about;
};
constexpr std::array guides = {
    guide{"clients.md", "what to set in each client"},
    guide{"team.md", "a team with keys, and the dashboard"},
    guide{"larger-than-memory.md", "a model larger than the memory"},
    guide{"nginx.md", "behind nginx"},
    guide{"limits.md", "limit a user"},
    guide{"measure.md", "measure"},
    guide{"several-models.md", "several models"},
    guide{"stored-responses.md", "answers that outlive a connection and a restart"},
    guide{"gpu.md", "a GPU"},
    guide{"STREAM.md", "twill's own WebSocket dialect"}};

constexpr std::string_view page_head =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
    "<meta name=\"viewport\" content=\"width=device-width\"><title>twill</title>"
    "<link rel=\"stylesheet\" href=\"page/look.css\"><style>\n"
    "body{max-width:60em;margin:2em auto;padding:0 1em}code{font-family:var(--mono)}\n"
    "table{border-collapse:collapse;width:100%}td,th{padding:.2em 1em .2em 0;vertical-align:top;"
    "text-align:left;border-bottom:1px solid var(--line)}\n"
    "td.refused{color:var(--bad)}td.no{color:var(--soft)}\n</style></head><body>\n";

/// Converts text to HTML; text between backquotes becomes code.
std::string html(std::string_view text) {
  std::string out;
  bool code = false;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '`')
      out += (code = !code) ? "<code>" : "</code>";
    else
      out += c;
  }
  return out;
}

std::string anchor_of(const operation& described) {
  std::string anchor(name_of(described.method));
  for (const char c : described.path)
    anchor += c == '/' || c == '*' ? '-' : c;
  return anchor;
}

std::string title_of(const operation& described) {
  return "<code>" + std::string(name_of(described.method)) + " " +
         html(path_with_names(described.path)) + "</code>";
}

/// Adds the row of a field and the rows of its members, whose names get the prefix `of`.
void add_field(std::string& out, const field_row& row, const std::string& of = {}) {
  out += "<tr><td><code>" + html(of + std::string(row.name)) + "</code>";
  if (row.required) out += " (required)";
  out += row.use == field_use::refused     ? "</td><td class=\"refused\">"
         : row.use == field_use::no_effect ? "</td><td class=\"no\">"
                                           : "</td><td>";
  out += std::string(word_of(row.use)) + "</td><td>" + html(row.note) + "</td></tr>\n";
  if (row.members == nullptr) return;
  for (const auto& member : row.members())
    add_field(out, member, of + std::string(row.name) + ".");
}

template <class Rows>
void add_fields(std::string& out, std::string_view heading, const Rows& rows) {
  out += "<table><tr><th>" + std::string(heading) + "</th><th></th><th></th></tr>\n";
  for (const auto& row : rows)
    add_field(out, row);
  out += "</table>\n";
}

/// Calls `add` with each operation. Each section of operations begins with a heading.
template <class Add>
void add_sections(std::string& out, std::string_view before, std::string_view after, Add add) {
  std::string_view section;
  for (const auto& one : operations()) {
    if (one.section != section) {
      if (!section.empty()) out += after;
      section = one.section;
      out += "<h2>" + html(section) + "</h2>\n" + std::string(before);
    }
    add(one);
  }
  out += after;
}

} // namespace

std::string routes_page() {
  std::string out(page_head);
  out += "<h1>twill</h1><p>A language model server. OpenAI's clients use the base URL "
         "<code>v1</code>, others this address without it; <a href=\"./\">the chat page</a> talks "
         "to the model, <code>twill "
         "chat</code> does so in a terminal. <a href=\"docs\">The fields of each body</a> have a "
         "page of their own, and <a href=\"openapi.json\">a document for programs</a>.</p>\n";
  add_sections(out, "<table>\n", "</table>\n", [&](const operation& one) {
    const bool documented = one.body != nullptr || !one.query.empty();
    out += "<tr><td>";
    if (documented) out += "<a href=\"docs#" + anchor_of(one) + "\">";
    out += title_of(one) + (documented ? "</a>" : "") + "</td><td>" + html(one.summary) +
           "</td></tr>\n";
  });
  out += "<p>Where keys are configured, all but those of the last three parts want one: "
         "<code>Authorization: Bearer KEY</code> or <code>X-Api-Key: KEY</code>. Administrators "
         "have routes and a dashboard of their own, at the address that "
         "<code>server.admin_listen</code> names.</p>\n<h2>Guides</h2><ul>\n";
  for (const auto& one : guides)
    out += "<li><a href=\"page/" + std::string(one.file) + "\">" + html(one.about) + "</a></li>\n";
  out += "</ul>\n<p><code>twilld --print-reference</code> describes every key of the "
         "configuration.</p>\n</body></html>\n";
  return out;
}

std::string docs_page() {
  std::string out(page_head);
  out += "<h1>twill: routes and fields</h1><p>A field is honoured, has no effect, or is refused by "
         "name, unless its value turns it off: ignoring it would give a wrong answer. One that is "
         "not listed is ignored, and null "
         "counts as absent. The note of a field without effect says whose it is. <a "
         "href=\"openapi.json\">The same for programs.</a></p>\n";
  add_sections(out, "", "", [&](const operation& one) {
    out += "<h3 id=\"" + anchor_of(one) + "\">" + title_of(one) + "</h3>\n<p>" + html(one.summary) +
           "</p>\n";
    if (!one.query.empty()) add_fields(out, "query", one.query);
    if (one.multipart)
      out += "<p>A form (multipart/form-data) with <code>purpose</code>, which is "
             "<code>batch</code>, and <code>file</code>.</p>\n";
    if (one.body != nullptr) add_fields(out, "body", unique_rows(one.body()));
  });
  out += "</body></html>\n";
  return out;
}

} // namespace twill::net
