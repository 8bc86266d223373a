// The space before a text in tokenizer.model, under every combination of its rules and of
// LlamaTokenizer's flags. A script in tools/golden recorded what transformers does.
#include <fstream>
#include <string>
#include <vector>

#include "models/text/tokenizer/sentencepiece_file.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/folder_text.hpp"
#include "tests/models/support/temp_folder.hpp"
#include "tests/paths.hpp"

using namespace twill;
using namespace twill::models;
using test::at;
using test::list_of;
using test::text_of;

TEST_CASE("a text of tokenizer.model begins with a space where transformers puts one", "[golden]") {
  const std::string root = test::golden_dir() + "/tokenizers/";
  const value golden = test::read_json_file(root + "prefix_space.json");
  auto file =
      sentencepiece_file::parse(read_text_file(root + "llama-spm/tokenizer.model").value()).value();
  const auto& texts = list_of(at(golden, "texts"));
  for (const value& c : list_of(at(golden, "cases"))) {
    file.add_dummy_prefix = *at(c, "add_dummy_prefix").as_bool();
    file.remove_extra_spaces = *at(c, "remove_extra_whitespaces").as_bool();
    const test::temp_folder folder;
    std::ofstream(folder.path() + "/tokenizer.model", std::ios::binary) << file.write();
    const auto* llama = families::find("llama");
    REQUIRE(llama != nullptr);
    const value config;
    const auto opened = make_folder_tokenizer({.path = folder.path(),
                                               .hints = llama->tokenizer,
                                               .config = &config,
                                               .tokenizer_config = &at(c, "flags")});
    REQUIRE(opened.ok());
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const auto ids = opened.value()->encode(text_of(texts[i]), {.parse_special = true});
      REQUIRE(ids.ok());
      CAPTURE(file.add_dummy_prefix, file.remove_extra_spaces, text_of(texts[i]));
      const value& flags = at(c, "flags");
      CAPTURE(flags.find("legacy") && *flags.find("legacy")->as_bool(),
              flags.find("add_prefix_space") ? *flags.find("add_prefix_space")->as_bool() : 2);
      CHECK(ids.value() == test::token_ids(list_of(at(c, "ids"))[i]));
    }
  }
}
