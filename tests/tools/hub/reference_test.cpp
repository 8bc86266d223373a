#include "tools/common/hub/reference.hpp"

#include <cstdlib>
#include <string>

#include "tests/catch.hpp"
#include "tests/tools/fake_server.hpp"
#include "tools/common/hub/url.hpp"

using namespace twill::tools;
using namespace twill::tests;

namespace {

struct expected {
  const char *given, *repository, *revision, *file;
};

} // namespace

TEST_CASE("every usual name of a model of the hub is read", "[hub]") {
  ::unsetenv("HF_ENDPOINT");
  const expected all[] = {
      {"Qwen/Qwen3-0.6B", "Qwen/Qwen3-0.6B", "main", ""},
      {"hf:Qwen/Qwen3-0.6B", "Qwen/Qwen3-0.6B", "main", ""},
      {"hf:gpt2", "gpt2", "main", ""},
      {"hf://Qwen/Qwen3-0.6B", "Qwen/Qwen3-0.6B", "main", ""},
      {"hf.co/bartowski/Llama-3.2-1B-Instruct-GGUF:Q8_0", "bartowski/Llama-3.2-1B-Instruct-GGUF",
       "main", "Q8_0"},
      {"hf:a/b:latest", "a/b", "main", ""},
      {"hf:a/b@v1.0:Q4_K_M", "a/b", "v1.0", "Q4_K_M"},
      {"hf:a/b@refs/pr/3", "a/b", "refs/pr/3", ""},
      {"hf:a/b:UD-Q4_K_XL", "a/b", "main", "UD-Q4_K_XL"},
      {"hf:a/b:sub/m-Q8_0.gguf", "a/b", "main", "sub/m-Q8_0.gguf"},
      {"https://huggingface.co/Qwen/Qwen3-0.6B", "Qwen/Qwen3-0.6B", "main", ""},
      {"https://huggingface.co/Qwen/Qwen3-0.6B/", "Qwen/Qwen3-0.6B", "main", ""},
      {"https://huggingface.co/a/b/tree/main", "a/b", "main", ""},
      {"https://huggingface.co/a/b/tree/v2", "a/b", "v2", ""},
      {"https://huggingface.co/a/b/blob/main/m.gguf", "a/b", "main", "m.gguf"},
      {"https://huggingface.co/a/b/resolve/main/x/m.gguf?download=true", "a/b", "main", "x/m.gguf"},
      {"https://huggingface.co/a/b/resolve/refs%2Fpr%2F3/m%20x.gguf", "a/b", "refs/pr/3",
       "m x.gguf"},
      {"https://hf.co/a/b:Q8_0", "a/b", "main", "Q8_0"},
  };
  for (const auto& one : all) {
    INFO(one.given);
    const auto read = hub::parse_reference(one.given);
    CHECK(read.repository == one.repository);
    CHECK(read.revision == one.revision);
    CHECK(read.file == one.file);
    // The text shown to the user can be parsed again.
    const auto again = hub::parse_reference(read.text());
    CHECK(again.text() == read.text());
    CHECK(again.repository == read.repository);
  }
}

TEST_CASE("a hostile or wrong name of a model is refused with the rule", "[hub]") {
  for (const char* given : {"hf:",
                            "hf:/",
                            "hf:/b",
                            "hf:a/b/c",
                            "hf:../b",
                            "hf:a/..",
                            "hf:a/b@../../x",
                            "hf:a/b@",
                            "hf:a/b:../m.gguf",
                            "hf:a/b:/etc/m.gguf",
                            "hf:a/b:x\n.gguf",
                            "hf:a/b:m.safetensors/x",
                            "hf:a b/c",
                            "hf:-a/b",
                            "hf:a--b/c",
                            "hf:a/b.git",
                            "https://huggingface.co/",
                            "https://huggingface.co/a/b/blob/main/config.json",
                            "https://huggingface.co/a/b/blob",
                            "https://huggingface.co/a/b/resolve/main/%2e%2e/m.gguf",
                            "https://huggingface.co/a/%zz"}) {
    INFO(given);
    CHECK(words_of_error([&] {
            hub::parse_reference(given);
          }).starts_with("a model of the hub must be named as hf:ORG/NAME"));
  }
}

TEST_CASE("a path is not taken for the id of a model, and an id is", "[hub]") {
  for (const char* id : {"Qwen/Qwen3-0.6B", "a/b:Q4_K_M", "a/b@v1", "a/b:m.gguf"})
    CHECK(hub::looks_like_id(id));
  for (const char* path : {"/models/a", "./a/b", "../a", "a", "a/b/c", "models/m.gguf", "~/a/b",
                           "dummy:7b", "hf:a/b", "https://huggingface.co/a/b", "a/", ""})
    CHECK_FALSE(hub::looks_like_id(path));
  for (const char* given : {"hf:a/b", "https://huggingface.co/a/b", "hf.co/a/b"})
    CHECK(hub::is_reference(given));
  for (const char* given : {"a/b", "https://huggingface.com/a/b", "https://example.org/m.gguf"})
    CHECK_FALSE(hub::is_reference(given));
}

TEST_CASE("no name of a file can leave its folder", "[hub]") {
  for (const char* path : {"a", "a.b/c", "a b", "..a", "a..", ".gitattributes", "\xc3\xa4.json"})
    CHECK(hub::is_safe_path(path));
  for (const std::string path : {"", "/a", "a/", "a//b", ".", "..", "../a", "a/..", "a/../b",
                                 "a/./b", "a\\b", "c:a", "a\nb", "a\x7f", "\xff", "\x1b[2J"}) {
    INFO(path);
    CHECK_FALSE(hub::is_safe_path(path));
  }
  CHECK_FALSE(hub::is_safe_path(std::string("a\0b", 3)));
  CHECK_FALSE(hub::is_safe_path(std::string(300, 'a')));
  std::string deep = "a";
  while (deep.size() < 1000)
    deep += "/a";
  CHECK_FALSE(hub::is_safe_path(deep));
}

// The references are those of RFC 3986, section 5.4, as far as a redirect uses them.
TEST_CASE("a redirect leads where the standard says", "[hub]") {
  const auto base = hub::parse_url("http://a/b/c/d;p?q");
  REQUIRE(base);
  const auto to = [&](const char* location) {
    const auto next = hub::resolve(*base, location);
    return next ? next->text() : std::string("none");
  };
  CHECK(to("http://g/h") == "http://g/h");
  CHECK(to("HTTPS://G:8443/h#part") == "https://g:8443/h");
  CHECK(to("g") == "http://a/b/c/g");
  CHECK(to("g/") == "http://a/b/c/g/");
  CHECK(to("/g") == "http://a/g");
  CHECK(to("//g") == "http://g/");
  CHECK(to("g?y") == "http://a/b/c/g?y");
  CHECK(to("g?y/./x:z") == "http://a/b/c/g?y/./x:z");
  CHECK(to("/api/resolve-cache/models/a/b?x=%2F") == "http://a/api/resolve-cache/models/a/b?x=%2F");
  for (const char* bad : {"", " ", "ftp://g/h", "file:///etc/passwd", "http://", "http://u@g/h",
                          "/a b", "/a\r\nX: y", "http://g:99999/"})
    CHECK(to(bad) == "none");
  CHECK(hub::parse_url("https://h/")->authority() == "h");
  CHECK(hub::parse_url("https://[::1]:1/x")->authority() == "[::1]:1");
}
