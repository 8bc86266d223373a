#include <algorithm>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include "models/text/tokenizer/gguf_tokenizer.hpp"
#include "models/text/tokenizer/pretokenizer.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/vocab.hpp"

using namespace twill;
using namespace twill::models;

namespace {

std::shared_ptr<const tokenizer> open(const std::string& name) {
  auto opened = make_gguf_tokenizer(test::vocab_metadata(name));
  REQUIRE(opened.ok());
  return opened.value();
}

models::failure open_error(const gguf::metadata& metadata) {
  auto opened = make_gguf_tokenizer(metadata);
  REQUIRE_FALSE(opened.ok());
  return opened.error();
}

} // namespace

TEST_CASE("an unknown pre-tokenizer is refused by name") {
  auto metadata = test::vocab_metadata("bytelevel-gpt2");
  metadata.entries["tokenizer.ggml.pre"] = std::string("no-such-kind");
  const auto error = open_error(metadata);
  CHECK(error.code == errc::unsupported);
  CHECK(error.detail.find("no-such-kind") != std::string::npos);
}

TEST_CASE("another tokenizer model is refused by name") {
  auto metadata = test::vocab_metadata("bytelevel-gpt2");
  metadata.entries["tokenizer.ggml.model"] = std::string("rwkv");
  const auto error = open_error(metadata);
  CHECK(error.code == errc::unsupported);
  CHECK(error.detail.find("rwkv") != std::string::npos);
}

TEST_CASE("broken vocabularies are refused, naming the key") {
  auto metadata = test::vocab_metadata("bytelevel-gpt2");
  SECTION("a merge of an unknown token") {
    std::get<gguf::string_array>(metadata.entries["tokenizer.ggml.merges"])[3] = "xyzzy q";
    const auto error = open_error(metadata);
    CHECK(error.code == errc::bad_metadata);
    CHECK(error.detail.find("tokenizer.ggml.merges[3]") != std::string::npos);
  }
  SECTION("a merge without a space") {
    std::get<gguf::string_array>(metadata.entries["tokenizer.ggml.merges"])[0] = "ab";
    CHECK(open_error(metadata).code == errc::bad_metadata);
  }
  SECTION("too few token types") {
    std::get<gguf::int_array>(metadata.entries["tokenizer.ggml.token_type"]).pop_back();
    CHECK(open_error(metadata).code == errc::bad_metadata);
  }
  SECTION("an EOS outside the vocabulary") {
    metadata.entries["tokenizer.ggml.eos_token_id"] = std::int64_t{1'000'000};
    CHECK(open_error(metadata).code == errc::bad_metadata);
  }
  SECTION("no tokens") {
    metadata.entries.erase("tokenizer.ggml.tokens");
    CHECK(open_error(metadata).code == errc::missing_metadata);
  }
}

TEST_CASE("every known pre-tokenizer compiles and loses no text") {
  const std::string text =
      "I'm  here, WE'LL go:\n\n\t 12345 Straße café 你好，世界 \r\n don't!!\xE2\x80\x83 x";
  for (const std::string_view name : pretokenizer_names()) {
    CAPTURE(name);
    auto metadata = test::vocab_metadata("bytelevel-gpt2");
    metadata.entries["tokenizer.ggml.pre"] = std::string(name);
    auto opened = make_gguf_tokenizer(metadata);
    REQUIRE(opened.ok());
    auto ids = opened.value()->encode(text, {});
    REQUIRE(ids.ok());
    CHECK(opened.value()->decode(ids.value(), false) == text);
  }
}

TEST_CASE("a file without a pre-tokenizer has the default one") {
  auto metadata = test::vocab_metadata("bytelevel-gpt2");
  const auto ids = [&] {
    return make_gguf_tokenizer(metadata).value()->encode("$$$ 12345 it's", {}).value();
  };
  metadata.entries["tokenizer.ggml.pre"] = std::string("default");
  const auto expected = ids();
  metadata.entries["tokenizer.ggml.pre"] = std::string();
  CHECK(ids() == expected);
  metadata.entries.erase("tokenizer.ggml.pre");
  CHECK(ids() == expected);
}

TEST_CASE("a special id of all ones means that there is no such token") {
  for (const std::int64_t none : {std::int64_t{4294967295}, std::int64_t{-1}}) {
    auto metadata = test::vocab_metadata("bytelevel-llama3");
    for (const char* name : {"bos", "eos", "eot", "eom", "unknown", "padding"})
      metadata.entries["tokenizer.ggml." + std::string(name) + "_token_id"] = none;
    metadata.entries["tokenizer.ggml.add_bos_token"] = true;
    metadata.entries["tokenizer.ggml.add_eos_token"] = true;
    const auto opened = make_gguf_tokenizer(metadata);
    REQUIRE(opened.ok());
    CHECK(opened.value()->bos_id() == -1);
    CHECK(opened.value()->eos_id() == -1);
    const auto plain = opened.value()->encode("text", {}).value();
    CHECK(opened.value()->encode("text", {.add_special = true}).value() == plain);
  }
}

TEST_CASE("ill-formed UTF-8 is refused") {
  const auto t = open("bytelevel-gpt2");
  for (const std::string text : {"\xFF", "a\xC3", "\xED\xA0\x80", "\xC0\x80", "\xF4\x90\x80\x80"}) {
    const auto ids = t->encode(text, {});
    REQUIRE_FALSE(ids.ok());
    CHECK(ids.code() == errc::bad_text);
    CHECK_FALSE(t->encode_prompt(text, {}).ok());
  }
}

TEST_CASE("control text in a literal range is plain text") {
  const auto t = open("bytelevel-gpt2");
  const std::string control = "<|im_end|>";
  const auto parsed = t->encode(control, {.parse_special = true}).value();
  const auto plain = t->encode(control, {}).value();
  REQUIRE(parsed.size() == 1);
  REQUIRE(plain.size() > 1);
  CHECK(t->encode_prompt(control, {}).value() == parsed);
  CHECK(t->encode_prompt(control, {{0, 10}}).value() == plain);
  SECTION("a range over one byte of it is enough") {
    CHECK(t->encode_prompt(control, {{0, 1}}).value() == plain);
    CHECK(t->encode_prompt(control, {{5, 6}}).value() == plain);
    CHECK(t->encode_prompt(control, {{9, 10}}).value() == plain);
  }
  SECTION("ranges beside it do not matter") {
    const auto ids = t->encode_prompt("ab" + control + "cd", {{0, 2}, {12, 14}}).value();
    CHECK(std::count(ids.begin(), ids.end(), parsed[0]) == 1);
  }
  SECTION("the same text twice, once literal") {
    const auto ids = t->encode_prompt(control + control, {{10, 20}}).value();
    CHECK(ids.front() == parsed[0]);
    CHECK(std::count(ids.begin(), ids.end(), parsed[0]) == 1);
  }
}

TEST_CASE("end ids come from the metadata and from well-known control tokens") {
  const auto t = open("bytelevel-gpt2");
  auto ends = t->end_ids();
  std::sort(ends.begin(), ends.end());
  CHECK(ends == std::vector<token_id>{900, 902}); // <|endoftext|>, <|im_end|>
  CHECK(t->eos_id() == 900);
  CHECK(t->bos_id() == -1);
  CHECK(t->is_special(901));
  CHECK_FALSE(t->is_special(10));
  CHECK_FALSE(t->is_special(-1));
  CHECK(t->token_bytes(-1, true).empty());
  CHECK(t->token_bytes(t->vocab_size(), true).empty());
}

TEST_CASE("a user-defined token of plain text matches everywhere") {
  auto metadata = test::vocab_metadata("bytelevel-gpt2");
  std::get<gguf::string_array>(metadata.entries["tokenizer.ggml.tokens"]).push_back("zz top");
  std::get<gguf::int_array>(metadata.entries["tokenizer.ggml.token_type"]).push_back(4);
  const auto t = make_gguf_tokenizer(metadata).value();
  const token_id id = t->vocab_size() - 1;
  for (const auto& ids :
       {t->encode("a zz top", {}).value(), t->encode_prompt("a zz top", {{0, 8}}).value()})
    CHECK(ids.back() == id);
  CHECK(t->token_bytes(id, false) == "zz top");
}

TEST_CASE("a megabyte of hostile text encodes in about a second") {
  const std::size_t n = 1 << 20;
  std::vector<std::string> texts = {std::string(n, 'a'), std::string(n, ' '), std::string(n, '\n'),
                                    std::string(n, 'A'), std::string(n, '1'), std::string(n, '<')};
  std::string mixed, controls;
  while (mixed.size() < n)
    mixed += " \n \t\xE3\x80\x80";
  while (controls.size() < n)
    controls += "<|im_end|>";
  texts.push_back(mixed);
  texts.push_back(controls);
  for (const char* pre : {"smollm", "llama-bpe", "tekken"}) {
    auto metadata = test::vocab_metadata("bytelevel-gpt2");
    metadata.entries["tokenizer.ggml.pre"] = std::string(pre);
    const auto t = make_gguf_tokenizer(metadata).value();
    for (const std::string& text : texts) {
      CAPTURE(pre, text.substr(0, 10));
      const std::clock_t begin = std::clock();
      auto ids = t->encode_prompt(text, {{5, n / 2}});
      const std::clock_t took = std::clock() - begin; // CPU time
      REQUIRE(ids.ok());
      CHECK(t->decode(ids.value(), false) == text);
      CHECK(took / CLOCKS_PER_SEC < 10); // quadratic time would take minutes
    }
  }
}

TEST_CASE("many threads encode at once") {
  const auto t = open("bytelevel-llama3");
  const auto expected = t->encode("Hello, world! 123 你好", {}).value();
  std::vector<std::thread> threads;
  std::vector<int> same(4, 0);
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int k = 0; k < 200; ++k)
        same[static_cast<std::size_t>(i)] +=
            t->encode("Hello, world! 123 你好", {}).value() == expected ? 1 : 0;
    });
  for (auto& thread : threads)
    thread.join();
  for (const int count : same)
    CHECK(count == 200);
}
