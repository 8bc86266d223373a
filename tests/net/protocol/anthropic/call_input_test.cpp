// Arguments of tool calls that arrive in pieces: the text that was sent so far is always the
// beginning of a JSON object.
#include "net/protocol/anthropic/call_input.hpp"

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/fuzz/mutate.hpp"
#include "tests/support/operations.hpp"

using namespace twill;
using namespace twill::net;

namespace {

/// The output for a text that comes in one piece, and the object that closed() makes of it.
std::pair<std::string, std::string> read(std::string_view text) {
  call_input input;
  const auto out = input.push(text);
  return {out, input.closed(out)};
}

nlohmann::json drawn(fuzz::generator& random, int depth) {
  switch (fuzz::draw(random, depth > 3 ? 5 : 8)) {
  case 0:
    return nullptr;
  case 1:
    return fuzz::draw(random, 2) == 0;
  case 2:
    return static_cast<std::int64_t>(fuzz::draw_number(random));
  case 3:
    return static_cast<double>(fuzz::draw(random, 1000)) / 64 - 5;
  case 4: {
    const char* const texts[] = {"", "a\nb\t\"\\/", "\u00e9 \U0001f600", "{\"x\":[", "]}", "\x01"};
    return texts[fuzz::draw(random, std::size(texts))];
  }
  case 5:
  case 6: {
    auto list = nlohmann::json::array();
    for (auto n = fuzz::draw(random, 4); n > 0; --n)
      list.push_back(drawn(random, depth + 1));
    return list;
  }
  default: {
    auto object = nlohmann::json::object();
    for (auto n = fuzz::draw(random, 4); n > 0; --n)
      object["k\n" + std::to_string(n)] = drawn(random, depth + 1);
    return object;
  }
  }
}

bool is_part_of(const nlohmann::json& part, const nlohmann::json& of) {
  if (part.is_object() && of.is_object())
    return std::all_of(part.items().begin(), part.items().end(), [&](const auto& one) {
      return of.contains(one.key()) && is_part_of(one.value(), of[one.key()]);
    });
  if (!part.is_array() || !of.is_array()) return part == of;
  if (part.size() > of.size()) return false;
  for (std::size_t i = 0; i < part.size(); ++i)
    if (!is_part_of(part[i], of[i])) return false;
  return true;
}

} // namespace

TEST_CASE("Arguments of a call are handed out as they were written") {
  fuzz::generator random(7);
  for (int i = 0; i < test::cases_here(2000); ++i) {
    nlohmann::json object = nlohmann::json::object();
    for (auto n = fuzz::draw(random, 5); n > 0; --n)
      object["k" + std::to_string(n)] = drawn(random, 0);
    const auto text =
        object.dump(static_cast<int>(fuzz::draw(random, 3)) - 1, ' ', fuzz::draw(random, 2) == 0);
    call_input input;
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
      const auto n = 1 + fuzz::draw(random, 6);
      out += input.push(std::string_view(text).substr(at, n));
      at += n;
    }
    INFO(text);
    REQUIRE(out == text);
    REQUIRE(input.whole());
    REQUIRE(input.closed(out) == text);
    REQUIRE(input.push(" and more").empty());

    const auto cut = std::string_view(text).substr(0, fuzz::draw(random, text.size()));
    const auto [begun, closed] = read(cut);
    INFO(cut << " -> " << closed);
    REQUIRE(text.starts_with(begun));
    const auto part = nlohmann::json::parse(closed, nullptr, false);
    REQUIRE(part.is_object());
    REQUIRE(is_part_of(part, object));
  }
}

TEST_CASE("A text that is no JSON object is handed out as far as one begins with it") {
  fuzz::generator random(11);
  const std::string alphabet = "{}[]\",:\\ \nu0d8e1-.tfnrsal";
  for (int i = 0; i < test::cases_here(20'000); ++i) {
    std::string text = fuzz::draw(random, 4) > 0 ? "{\"a\":" : "";
    for (auto n = fuzz::draw(random, 20); n > 0; --n)
      text += alphabet[fuzz::draw(random, alphabet.size())];
    call_input input;
    const auto out = input.push(text);
    INFO(text << " -> " << out << " -> " << input.closed(out));
    REQUIRE(nlohmann::json::parse(input.closed(out), nullptr, false).is_object());
    if (nlohmann::json::accept(text) && nlohmann::json::parse(text).is_object()) {
      REQUIRE(input.whole());
      REQUIRE(nlohmann::json::parse(out) == nlohmann::json::parse(text));
    }
    if (input.whole()) REQUIRE(nlohmann::json::accept(out));
  }
}

TEST_CASE("What is no JSON ends what is handed out of a call's arguments") {
  const auto out = [](std::string_view text) { return read(text).first; };
  CHECK(out("text") == "");
  CHECK(out("[1]") == "");
  CHECK(out("null") == "");
  CHECK(out("  {}") == "{}");
  CHECK(out("{a: 1}") == "{");
  CHECK(out("{\"a\": 01}") == "{\"a\": ");
  CHECK(out("{\"a\": 1.}") == "{\"a\": ");
  CHECK(out("{\"a\": True}") == "{\"a\": ");
  CHECK(out("{\"a\": 1,}") == "{\"a\": 1,");
  CHECK(out("{\"a\": [1,]}") == "{\"a\": [1,");
  CHECK(out("{\"a\": [ ]}") == "{\"a\": [ ]}");
  CHECK(out("{\"a\" 1}") == "{\"a\" ");
  CHECK(out("{\"a\": 1]") == "{\"a\": 1");
  CHECK(out(R"({"a":"\x"})") == R"({"a":")");
  CHECK(out(R"({"a":"\u12g4"})") == R"({"a":")");
  CHECK(out(R"({"a":"\ud83d\ude00"})") == R"({"a":"\ud83d\ude00"})");
  CHECK(out(R"({"a":"\ud83dx"})") == R"({"a":")");
  CHECK(out(R"({"a":"\ud83d\u0041"})") == R"({"a":")");
  CHECK(out(R"({"a":"\ude00"})") == R"({"a":")");
  CHECK(out("{\"a\":\"x\ty\"}") == "{\"a\":\"x\\ty\"}");
  const std::string deep(100, '[');
  CHECK(out("{\"a\":" + deep) == "{\"a\":" + deep.substr(0, 63));
}
