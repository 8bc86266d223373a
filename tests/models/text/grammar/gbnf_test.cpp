// Grammars in llama.cpp's GBNF format: the tests check which texts they accept, and not only that
// they compile.
#include "models/text/grammar/gbnf.hpp"

#include <string>
#include <vector>

#include "models/checkpoint/json.hpp"
#include "tests/catch.hpp"
#include "tests/models/text/grammar/random_answer.hpp"

using namespace twill::test;

namespace {

// Grammars of llama.cpp, from its folder grammars/ (MIT license).
const char* const json_gbnf = R"gbnf(root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws

object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws

array  ::=
  "[" ws (
            value
    ("," ws value)*
  )? "]" ws

string ::=
  "\"" (
    [^"\\\x7F\x00-\x1F] |
    "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) # escapes
  )* "\"" ws

number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws

# Optional space: by convention, applied in this grammar after literal chars when allowed
ws ::= | " " | "\n" [ \t]{0,20}
)gbnf";

const char* const arithmetic_gbnf = R"gbnf(root  ::= (expr "=" ws term "\n")+
expr  ::= term ([-+*/] term)*
term  ::= ident | num | "(" ws expr ")" ws
ident ::= [a-z] [a-z0-9_]* ws
num   ::= [0-9]+ ws
ws    ::= [ \t\n]*
)gbnf";

const char* const c_gbnf = R"gbnf(root ::= (declaration)*

declaration ::= dataType identifier "(" parameter? ")" "{" statement* "}"

dataType  ::= "int" ws | "float" ws | "char" ws
identifier ::= [a-zA-Z_] [a-zA-Z_0-9]*

parameter ::= dataType identifier

statement ::=
    ( dataType identifier ws "=" ws expression ";" ) |
    ( identifier ws "=" ws expression ";" ) |
    ( identifier ws "(" argList? ")" ";" ) |
    ( "return" ws expression ";" ) |
    ( "while" "(" condition ")" "{" statement* "}" ) |
    ( "for" "(" forInit ";" ws condition ";" ws forUpdate ")" "{" statement* "}" ) |
    ( "if" "(" condition ")" "{" statement* "}" ("else" "{" statement* "}")? ) |
    ( singleLineComment ) |
    ( multiLineComment )

forInit ::= dataType identifier ws "=" ws expression | identifier ws "=" ws expression
forUpdate ::= identifier ws "=" ws expression

condition ::= expression relationOperator expression
relationOperator ::= ("<=" | "<" | "==" | "!=" | ">=" | ">")

expression ::= term (("+" | "-") term)*
term ::= factor(("*" | "/") factor)*

factor ::= identifier | number | unaryTerm | funcCall | parenExpression
unaryTerm ::= "-" factor
funcCall ::= identifier "(" argList? ")"
parenExpression ::= "(" ws expression ws ")"

argList ::= expression ("," ws expression)*

number ::= [0-9]+

singleLineComment ::= "//" [^\n]* "\n"
multiLineComment ::= "/*" ( [^*] | ("*" [^/]) )* "*/"

ws ::= ([ \t\n]+)
)gbnf";

const char* const chess_gbnf =
    R"gbnf(# Specifies chess moves as a list in algebraic notation, using PGN conventions

# Force first move to "1. ", then any 1-2 digit number after, relying on model to follow the pattern
root    ::= "1. " move " " move "\n" ([1-9] [0-9]? ". " move " " move "\n")+
move    ::= (pawn | nonpawn | castle) [+#]?

# piece type, optional file/rank, optional capture, dest file & rank
nonpawn ::= [NBKQR] [a-h]? [1-8]? "x"? [a-h] [1-8]

# optional file & capture, dest file & rank, optional promotion
pawn    ::= ([a-h] "x")? [a-h] [1-8] ("=" [NBKQR])?

castle  ::= "O-O" "-O"?
)gbnf";

const char* const english_gbnf = R"gbnf(# note: this might be incomplete, mostly an example
root        ::= en-char+ ([ \t\n] en-char+)*
en-char     ::= letter | digit | punctuation
letter      ::= [a-zA-Z]
digit       ::= [0-9]
punctuation ::= [!"#$%&'()*+,-./:;<=>?@[\\\]^_`{|}~]
)gbnf";

const char* const japanese_gbnf = R"gbnf(# A probably incorrect grammar for Japanese
root        ::= jp-char+ ([ \t\n] jp-char+)*
jp-char     ::= hiragana | katakana | punctuation | cjk
hiragana    ::= [ぁ-ゟ]
katakana    ::= [ァ-ヿ]
punctuation ::= [、-〾]
cjk         ::= [一-鿿]
)gbnf";

const char* const list_gbnf = R"gbnf(root ::= item+

# Excludes various line break characters
item ::= "- " [^\r\n\x0b\x0c\x85\u2028\u2029]+ "\n"
)gbnf";

twill::config::grammar_spec gbnf(const std::string& text) {
  return {twill::config::grammar_kind::ebnf, text, {}, false};
}

void check(const std::string& grammar, const std::vector<std::string>& valid,
           const std::vector<std::string>& invalid) {
  INFO(grammar);
  const auto made = compiled(gbnf(grammar));
  INFO((made.ok() ? "" : made.detail()));
  REQUIRE(made.ok());
  for (const auto& text : valid) {
    INFO("valid: " << text);
    CHECK(passes(made.value(), text));
  }
  for (const auto& text : invalid) {
    INFO("invalid: " << text);
    CHECK_FALSE(passes(made.value(), text));
  }
}

} // namespace

TEST_CASE("gbnf: llama.cpp's own grammars") {
  check(json_gbnf,
        {R"({})", R"({"a": [1, -2.5e+1, "\u00e9\n", {"b":null}], "é🦊" :true})",
         "{\n\t\t\"a\":1}", R"({"a":[]})"},
        {"[1]", "{", R"({"a":01})", R"({"a":1,})", "{\"a\tb\":1}", R"({"\x":1})", "{\r}",
         R"({"a":12345678901234567})"});
  check(arithmetic_gbnf, {"a=1\n", "(x +y_1) *2 = 3\n1=2\n"}, {"a=1", "1+\n", "A=1\n"});
  check(c_gbnf, {"int  f(){return  1;}", "int  main(int  x){x = 1;if(x<2){y (x);}else{/*a*/}}"},
        {"f(){}", "int f()"});
  check(chess_gbnf, {"1. e4 e5\n2. Nf3 Nc6\n", "1. e4 e5\n10. O-O-O bxa8=Q#\n"},
        {"1. e4 e5\n", "1. e9 e5\n2. a4 a5\n"});
  check(english_gbnf, {"Hello, you \\ [all]!\n{x}", "a"}, {"", "é", "a  b"});
  check(japanese_gbnf, {"こんにちは、世界。", "カ ナ"}, {"hello", "", "。a"});
  check(list_gbnf, {"- a\n- bé\n"}, {"- a", "- a\x0b\n", "- a\xc2\x85\n", "- a\xe2\x80\xa8\n"});
}

TEST_CASE("gbnf: answers drawn from json.gbnf are JSON") {
  const auto grammar = compiled(gbnf(json_gbnf)).value();
  std::mt19937 random(5);
  int n_ended = 0;
  for (int i = 0; i < 40; ++i) {
    const auto drawn = random_answer(grammar, random);
    INFO(drawn.text);
    REQUIRE_FALSE(drawn.dead_end);
    if (!drawn.ended) continue;
    ++n_ended;
    CHECK(twill::models::parse_json(drawn.text, "answer").ok());
  }
  CHECK(n_ended > 20);
}

TEST_CASE("gbnf: alternatives may be empty") {
  check("root ::= \"a\" | \n", {"a", ""}, {"b"});
  check("root ::= | \"a\"", {"a", ""}, {"b"});
  check("root ::= \"a\" (\"b\" | ) \"c\"", {"abc", "ac"}, {"a"});
  check("root ::= \"a\" () \"c\"", {"ac"}, {"a"});
  check("root ::= x \"a\"\nx ::= | \"b\" x", {"a", "bba"}, {"b"});
  check("root ::= \"\" \"a\"", {"a"}, {""});
}

TEST_CASE("gbnf: a point is any character") {
  check("root ::= \"<\" . \">\"", {"<a>", "<é>", "<🦊>", "<\n>", "<\\>"},
        {"<>", "<ab>", "<\xff>", "<\xed\xa0\x80>"});
  check("root ::= .*", {"", "anything\nat all"}, {});
  check("root ::= .{2}", {"ab", "北京"}, {"a", "abc"});
  check("root ::= [.]\"..\"", {"..."}, {"a.."});
}

TEST_CASE("gbnf: counts of repetition") {
  check("root ::= \"a\"{2}", {"aa"}, {"a", "aaa"});
  check("root ::= \"a\"{2,}", {"aa", "aaaaa"}, {"a"});
  check("root ::= \"ab\"{1,2}", {"ab", "abab"}, {"", "ababab", "abb"});
  check("root ::= \"a\"{,2}", {"", "a", "aa"}, {"aaa"});
  check("root ::= (\"a\" | \"b\"){ , 2 } \"c\"", {"c", "abc"}, {"aaac"});
  check("root ::= [ab]{0,3}? x+\nx ::= \"x\"", {"x", "abxx", "bbbx"}, {"ab", "aaaax"});
  check("root ::= \"a\"{0} \"b\"", {"b"}, {"ab"});
}

TEST_CASE("gbnf: characters, classes and comments") {
  check("root ::= \"\\x41\\u00e9\\U0001F98A\\t\\\\\\\"[\"", {"Aé🦊\t\\\"["}, {"A"});
  check("root ::= [-a] [a-] [\\]\\[\\\\] [^^] [+-9]", {"-a]b+", "a-\\é5"},
        {"b-]b+", "-a]^+", "-a]b:"});
  check("# about\r\nroot ::= ( # one\r\n  \"a\" # \"no\"\n\n  \"b\" |\n \"#\" )\r\n\n# end",
        {"ab", "#"}, {"a", "no"});
  check("root ::= a-b_1\n\na-b_1::=\"x\"|\n\"y\"\n", {"x", "y"}, {""});
}

TEST_CASE("gbnf: what only XGrammar's EBNF has is left to it, and so are errors") {
  check("root ::= Regex(\"a+b\")", {"aab"}, {"b"});
  check("root ::= a \"b\"\na ::= \"x\" (= \"b\")\n", {"xb"}, {"x"});
  for (const auto* bad :
       {"root ::= missing", "start ::= \"a\"", "root ::= \"a", "root ::= [a", "root ::= (\"a\"",
        "root ::= \"a\"{2,1}", "root ::= *", "root = \"a\"", "root ::= \"a\"\nroot ::= \"b\""}) {
    INFO(bad);
    CHECK_FALSE(ebnf_of_gbnf(bad));
    const auto made = compiled(gbnf(bad));
    REQUIRE_FALSE(made.ok());
    CHECK(made.code() == errc::bad_grammar);
  }
  const auto deep = compiled(gbnf("root ::= " + std::string(100000, '(')));
  REQUIRE_FALSE(deep.ok());
  CHECK(deep.code() == errc::bad_grammar);
}
