#include <string>
#include <vector>

#include "models/text/grammar/errc.hpp"
#include "models/text/grammar/schema/automaton.hpp"
#include "models/text/grammar/schema/boolean_operations.hpp"
#include "models/text/grammar/schema/formats.hpp"
#include "models/text/grammar/schema/search_automaton.hpp"
#include "tests/catch.hpp"

using namespace twill::models::grammar;

namespace {

bool found(const std::string& pattern, const std::string& text) {
  return search_automaton(pattern).accepts(text);
}

errc refused(const std::string& pattern) {
  try {
    search_automaton(pattern);
  } catch (const refusal& r) {
    return r.why.code;
  }
  FAIL(pattern << " is not refused");
  return errc::bad_grammar;
}

} // namespace

TEST_CASE("pattern: found anywhere, as JSON Schema has it, unless anchored") {
  CHECK(found("b", "abc"));
  CHECK_FALSE(found("^b", "abc"));
  CHECK(found("c$", "abc"));
  CHECK_FALSE(found("b$", "abc"));
  CHECK(found("^alpha|beta|rc$", "xbetax"));
  CHECK_FALSE(found("^(alpha|beta)$", "xbeta"));
  CHECK(found("", ""));
  CHECK(found("^$", ""));
  CHECK_FALSE(found("^$", "a"));
}

TEST_CASE("pattern: classes, escapes and counts") {
  CHECK(found("^[a-z-_.]+$", "a-_."));
  CHECK(found("^[^\"\\\\\\x00-\\x1f]$", "é"));
  CHECK_FALSE(found("^\\d{2,3}$", "1"));
  CHECK(found("^\\d{2,3}$", "123"));
  CHECK_FALSE(found("^\\d{2,3}$", "1234"));
  CHECK(found("^(ab){2,}?$", "ababab"));
  CHECK(found("^a{,2}$", "a{,2}"));
  CHECK(found("^\\u00e9\\u{1F98A}$", "é🦊"));
  CHECK(found("^\\p{Lu}$", "É"));
  CHECK_FALSE(found("^.$", "\n"));
  CHECK(found("^[[a-z]*[-]?[a-z]*]*$", "[]"));
}

TEST_CASE("pattern: lookahead right behind ^ restricts the whole string") {
  CHECK(found("^(?!io\\.x\\.)[a-z.]+$", "io.y.z"));
  CHECK_FALSE(found("^(?!io\\.x\\.)[a-z.]+$", "io.x.z"));
  CHECK(found("^(?=.*\\d)[a-z0-9]{3}$", "ab1"));
  CHECK_FALSE(found("^(?=.*\\d)[a-z0-9]{3}$", "abc"));
}

TEST_CASE("pattern: what no automaton enforces is refused") {
  CHECK(refused("(a)\\1") == errc::unsupported);
  CHECK(refused("a(?=b)c") == errc::unsupported);
  CHECK(refused("(?<=a)b") == errc::unsupported);
  CHECK(refused("\\bword") == errc::unsupported);
  CHECK(refused("(a") == errc::bad_grammar);
  CHECK(refused("a)") == errc::bad_grammar);
  CHECK(refused("[b-a]") == errc::bad_grammar);
  CHECK(refused("*a") == errc::bad_grammar);
  CHECK(refused("((a{100}){100}){100}") == errc::too_large);
}

TEST_CASE("automaton: complement, intersection, union and lengths") {
  const auto some_a = search_automaton("^a+$");
  const auto short_ones = length_automaton(2, 3);
  const auto both = intersection(some_a, short_ones);
  CHECK_FALSE(both.accepts("a"));
  CHECK(both.accepts("aaa"));
  CHECK_FALSE(both.accepts("aaaa"));
  CHECK(both.length_bounds().least == 2);
  CHECK(both.length_bounds().greatest == 3);
  CHECK_FALSE(some_a.length_bounds().greatest.has_value());
  CHECK(complement(some_a).accepts(""));
  CHECK_FALSE(complement(some_a).accepts("aa"));
  CHECK(intersection(some_a, complement(some_a)).empty());
  const std::vector<std::string> names{"id", "idle", "é"};
  const auto others = complement(literal_automaton(names));
  CHECK(others.accepts("idl"));
  CHECK_FALSE(others.accepts("idle"));
  CHECK_FALSE(others.accepts("é"));
  CHECK(united(some_a, literal_automaton(names)).accepts("id"));
}

TEST_CASE("format: dates know their months and leap years, times their zone") {
  const auto fits = [](const char* format, const char* text) {
    return found(format_pattern(format), text);
  };
  CHECK(fits("date", "2024-02-29"));
  CHECK_FALSE(fits("date", "2023-02-29"));
  CHECK_FALSE(fits("date", "1900-02-29"));
  CHECK(fits("date", "2000-02-29"));
  CHECK_FALSE(fits("date", "2022-01-32"));
  for (const char* years_of_old : {"0001-01-01", "0004-02-29", "0400-02-29", "0099-12-31"})
    CHECK(fits("date", years_of_old));
  for (const char* year_zero : {"0000-01-01", "0000-02-29", "0000-12-31"})
    CHECK_FALSE(fits("date", year_zero));
  CHECK_FALSE(fits("date", "2022-04-31"));
  CHECK(fits("date-time", "2022-01-01T12:00:00Z"));
  CHECK(fits("date-time", "2022-01-01T12:00:00.5+01:30"));
  CHECK_FALSE(fits("date-time", "2022-01-01T12:00:00"));
  CHECK_FALSE(fits("date-time", "2022-01-01 12:00:00Z"));
  CHECK(fits("ipv4", "255.0.10.1"));
  CHECK_FALSE(fits("ipv4", "256.1.1.1"));
  CHECK(fits("ipv6", "::1"));
  CHECK(fits("ipv6", "2001:db8::8a2e:370:7334"));
  CHECK_FALSE(fits("ipv6", "12345::"));
  CHECK(fits("email", "a.b+c@example.com"));
  CHECK_FALSE(fits("email", "invalid_email"));
  CHECK(fits("uri", "https://user@example.com:8080/a/b?c=d#e"));
  CHECK(fits("uri", "urn:isbn:0451450523"));
  CHECK_FALSE(fits("uri", "not a url"));
  CHECK_FALSE(fits("uri", "/relative"));
  CHECK(fits("uri-reference", "/relative?x"));
  CHECK_FALSE(fits("uri-reference", "invalid uri"));
  CHECK(fits("uuid", "2eb8aa08-aa98-11ea-b4aa-73b441d16380"));
  CHECK(fits("duration", "P1DT12H"));
  CHECK_FALSE(fits("duration", "P1D2H"));
  CHECK(fits("json-pointer", "/a~1b/0"));
  CHECK(format_pattern("int32").empty());
}
