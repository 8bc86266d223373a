// Schemas of JSONSchemaBench, if they lie beside the checkout (../shared/schemas, or
// TWILL_SCHEMAS): a text that a schema's grammar accepts must be valid, and nearly every valid text
// must be accepted.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "config/base/value.hpp"
#include "models/checkpoint/json.hpp"
#include "models/text/grammar/schema/decimal.hpp"
#include "models/text/grammar/schema/document.hpp"
#include "tests/catch.hpp"
#include "tests/models/text/grammar/byte_vocabulary.hpp"
#include "tests/paths.hpp"

using namespace twill;
using namespace twill::test;

namespace {

std::filesystem::path schema_folder() {
  if (const char* given = std::getenv("TWILL_SCHEMAS")) return given;
  return std::filesystem::path(test::source_dir()).parent_path() / "shared" / "schemas";
}

void write(std::string& out, const value& v, int indent, int depth);

void write_string(std::string& out, const std::string& text) {
  out += '"';
  for (const char c : text) {
    char code[8];
    if (c == '"' || c == '\\')
      out += '\\', out += c;
    else if (c == '\n')
      out += "\\n";
    else if (static_cast<unsigned char>(c) < 0x20)
      std::snprintf(code, sizeof code, "\\u%04x", c), out += code;
    else
      out += c;
  }
  out += '"';
}

void new_line(std::string& out, int indent, int depth) {
  if (indent > 0) out += "\n" + std::string(static_cast<std::size_t>(indent * depth), ' ');
}

void write(std::string& out, const value& v, int indent, int depth) {
  if (const auto* s = v.as_string()) return write_string(out, *s);
  if (const auto* list = v.as_list()) {
    out += '[';
    for (std::size_t i = 0; i < list->size(); ++i) {
      if (i > 0) out += ',';
      new_line(out, indent, depth + 1);
      write(out, (*list)[i], indent, depth + 1);
    }
    if (!list->empty()) new_line(out, indent, depth);
    out += ']';
  } else if (const auto* object = v.as_object()) {
    out += '{';
    bool first = true;
    for (const auto& [key, inner] : *object) {
      if (!std::exchange(first, false)) out += ',';
      new_line(out, indent, depth + 1);
      write_string(out, key);
      out += indent > 0 ? ": " : ":";
      write(out, inner, indent, depth + 1);
    }
    if (!object->empty()) new_line(out, indent, depth);
    out += '}';
  } else if (v.is_null()) {
    out += "null";
  } else if (const auto* b = v.as_bool()) {
    out += *b ? "true" : "false";
  } else {
    out += number_text(v);
  }
}

std::string written(const value& v, int indent) {
  std::string out;
  write(out, v, indent, 0);
  return out;
}

} // namespace

TEST_CASE(
    "shared schemas: no invalid instance passes, few valid ones fail, few schemas are refused") {
  if (std::getenv("TWILL_SCHEMAS") == nullptr && !std::filesystem::exists(schema_folder())) {
    WARN("skipped: no schemas lie at " << schema_folder().string()
                                       << "; TWILL_SCHEMAS names another folder");
    return;
  }
  // The schemas are open as they stand ("strict": false), and closed as for all other requests.
  for (const bool closed : {false, true}) {
    std::string seen; // one line for each refusal or wrong answer
    int schemas = 0, refused = 0, valid = 0, valid_refused = 0, invalid_accepted = 0;
    for (const auto& entry : std::filesystem::directory_iterator(schema_folder())) {
      if (entry.path().extension() != ".json") continue;
      const auto file = models::read_json_file(entry.path().string(), 1 << 24);
      REQUIRE(file.ok());
      ++schemas;
      const auto grammar =
          compiled(schema_spec(written(*member(file.value(), "schema"), 0), closed));
      if (!grammar.ok()) {
        ++refused;
        seen += entry.path().filename().string() + " is refused: " + grammar.detail() + "\n";
        continue;
      }
      for (const auto& test : *member(file.value(), "tests")->as_list()) {
        const bool is_valid = *member(test, "valid")->as_bool();
        for (const int indent : {0, 2}) {
          const bool accepted = passes(grammar.value(), written(*member(test, "data"), indent));
          valid += is_valid ? 1 : 0;
          if (is_valid && !accepted) {
            ++valid_refused;
            seen += entry.path().filename().string() + " refuses " +
                    written(*member(test, "data"), 0) + "\n";
          }
          if (!is_valid && accepted) {
            ++invalid_accepted;
            seen += entry.path().filename().string() + " accepts " +
                    written(*member(test, "data"), 0) + "\n";
          }
        }
      }
    }
    REQUIRE(schemas > 0);
    INFO(seen);
    INFO((closed ? "closed: " : "open: ")
         << schemas << " schemas, " << refused << " refused; " << valid_refused << " of " << valid
         << " valid texts refused");
    CHECK(invalid_accepted == 0);
    CHECK(refused * 100 <= schemas * 15);
    if (!closed) CHECK(valid_refused * 50 <= valid);
  }
}
