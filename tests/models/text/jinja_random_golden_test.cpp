// Random expressions and statements give the output of Jinja2; tools/golden/jinja_random.py
// generates them.
#include <string>

#include "models/text/chat_template.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "tests/support/json.hpp"

using namespace twill;
using namespace twill::models;

namespace {

/// twill refuses rows of no items, for which Jinja2 prints one empty row in front of all items.
bool is_refused_on_purpose(const std::string& expression) {
  return expression.find("|batch(0") != std::string::npos ||
         expression.find("|batch(linecount=0") != std::string::npos;
}

} // namespace

TEST_CASE("random expressions and statements print what Jinja2 prints", "[golden]") {
  const value file = test::read_json_file(test::golden_dir() + "/jinja_random.json");
  for (const value& c : test::list_of(test::at(file, "cases"))) {
    const value_list& both = test::list_of(c);
    const std::string& given = test::text_of(both.at(0));
    const std::string source = given.starts_with("{%") ? given : "{{ " + given + " }}";
    std::string printed;
    bool ok = false;
    const auto parsed = chat_template::parse(source, "<s>", "</s>");
    if (parsed.ok()) {
      auto done = parsed.value()->render({});
      ok = done.ok();
      printed = ok ? done.value().text : done.detail();
    } else {
      printed = parsed.detail();
    }
    INFO(source << " prints: " << printed);
    if (both.at(1).is_null() || is_refused_on_purpose(given)) {
      CHECK_FALSE(ok);
    } else {
      INFO("Jinja2 prints: " << test::text_of(both.at(1)));
      CHECK((ok && printed == test::text_of(both.at(1))));
    }
  }
}
