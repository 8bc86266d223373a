#include "tools/common/hub/select.hpp"

#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/tools/fake_server.hpp"

using namespace twill::tools;
using namespace twill::tests;

namespace {

hub::repo_listing listing_of(const std::vector<std::string>& paths) {
  hub::repo_listing listing{std::string(40, 'a'), {}};
  for (const auto& path : paths)
    listing.files.push_back({path, 1 << 20, std::string(64, 'b'), {}});
  return listing;
}

std::vector<std::string> names(const std::vector<hub::repo_file>& files) {
  std::vector<std::string> paths;
  for (const auto& file : files)
    paths.push_back(file.path);
  return paths;
}

std::vector<std::string> gguf_of(const std::vector<std::string>& paths, const char* reference) {
  const auto chosen = hub::choose_files(listing_of(paths), hub::parse_reference(reference));
  return chosen.is_gguf ? names(chosen.weights) : std::vector<std::string>{"a folder"};
}

std::string refusal_of(const std::vector<std::string>& paths, const char* reference) {
  return words_of_error([&] { gguf_of(paths, reference); });
}

using paths = std::vector<std::string>;

} // namespace

TEST_CASE("a folder is its configuration, tokenizer and weights of one format", "[hub]") {
  const auto listing =
      listing_of({".gitattributes", "README.md", "LICENSE", "config.json", "generation_config.json",
                  "tokenizer.json", "tokenizer_config.json", "vocab.json", "merges.txt",
                  "chat_template.jinja", "additional_chat_templates/tool_use.jinja",
                  "model.safetensors", "pytorch_model.bin", "onnx/model.onnx",
                  "original/consolidated.00.pth", "figures/loss.png", "modeling_x.py", "a.gguf"});
  const auto named = hub::parse_reference("hf:a/b");
  const auto chosen = hub::choose_files(listing, named);
  CHECK_FALSE(chosen.is_gguf);
  CHECK(names(chosen.texts) == paths{"config.json", "generation_config.json", "tokenizer.json",
                                     "tokenizer_config.json", "vocab.json", "merges.txt",
                                     "chat_template.jinja",
                                     "additional_chat_templates/tool_use.jinja"});
  CHECK(names(hub::choose_weights(listing, "", named)) == paths{"model.safetensors"});
}

TEST_CASE("shards are those that the index lists", "[hub]") {
  const auto named = hub::parse_reference("hf:a/b");
  const auto listing =
      listing_of({"config.json", "model-00001-of-00002.safetensors", "old.safetensors",
                  "model-00002-of-00002.safetensors", "model.safetensors.index.json"});
  REQUIRE(hub::index_of(listing) != nullptr);
  const char* index = R"({"weight_map": {"x": "model-00002-of-00002.safetensors",
      "y": "model-00001-of-00002.safetensors", "z": "model-00002-of-00002.safetensors"}})";
  CHECK(names(hub::choose_weights(listing, index, named)) ==
        paths{"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"});
  for (const char* bad : {"", "{}", R"({"weight_map": {}})", R"({"weight_map": {"x": 1}})",
                          R"({"weight_map": {"x": "../../etc/passwd"}})",
                          R"({"weight_map": {"x": "gone.safetensors"}})"})
    CHECK_FALSE(words_of_error([&] { hub::choose_weights(listing, bad, named); }).empty());
}

TEST_CASE("weights of PyTorch are taken where there are no others", "[hub]") {
  const auto named = hub::parse_reference("hf:a/b");
  CHECK(names(hub::choose_weights(listing_of({"config.json", "pytorch_model.bin"}), "", named)) ==
        paths{"pytorch_model.bin"});
  CHECK(names(hub::choose_weights(listing_of({"config.json", "gptq_model-4bit-128g.safetensors"}),
                                  "", named)) == paths{"gptq_model-4bit-128g.safetensors"});
  CHECK(refusal_of({"config.json", "a.safetensors", "b.safetensors"}, "hf:a/b")
            .find("no model that twill reads") != std::string::npos);
  CHECK(refusal_of({"config.json", "tf_model.h5"}, "hf:a/b").find("there must be config.json") !=
        std::string::npos);
}

TEST_CASE("one GGUF of several is chosen by its quantisation or its name", "[hub]") {
  const paths repository{
      "README.md",   "m-IQ4_XS.gguf",      "m-Q4_K_M.gguf",   "m-Q4_K_S.gguf",  "m-UD-Q4_K_XL.gguf",
      "m-Q8_0.gguf", "m-BF16.gguf",        "mmproj-F16.gguf", "m.imatrix.gguf", "sub/m-Q2_K.gguf",
      "m-Q4_K.gguf", "mmproj-m-Q8_0.gguf", "m-UD-Q4_K_M.gguf"};
  CHECK(gguf_of(repository, "hf:a/b") == paths{"m-Q4_K_M.gguf"});
  CHECK(gguf_of(repository, "hf:a/b:q8_0") == paths{"m-Q8_0.gguf"});
  CHECK(gguf_of(repository, "hf:a/b:Q4_K") == paths{"m-Q4_K.gguf"});
  CHECK(gguf_of(repository, "hf:a/b:Q4_K_XL") == paths{"m-UD-Q4_K_XL.gguf"});
  CHECK(gguf_of(repository, "hf:a/b:UD-Q4_K_M") == paths{"m-UD-Q4_K_M.gguf"});
  CHECK(gguf_of(repository, "hf:a/b:Q2_K") == paths{"sub/m-Q2_K.gguf"});
  CHECK(gguf_of(repository, "hf:a/b:m-IQ4_XS.gguf") == paths{"m-IQ4_XS.gguf"});
  const auto none = refusal_of(repository, "hf:a/b:Q5_0");
  CHECK(none.find("no model of that quantisation, but\n  m-BF16.gguf, 1.00 MiB\n") !=
        std::string::npos);
  CHECK(none.find("mmproj") == std::string::npos);
  CHECK(refusal_of(repository, "hf:a/b:other.gguf").find("has no such model, but") !=
        std::string::npos);
}

TEST_CASE("a repository with one GGUF needs no name, one with several says which there are",
          "[hub]") {
  CHECK(gguf_of({"config.json", "m-Q8_0.gguf", "mmproj-m.gguf"}, "hf:a/b") == paths{"m-Q8_0.gguf"});
  const auto several = refusal_of({"m-Q8_0.gguf", "m-Q5_0.gguf"}, "hf:a/b");
  CHECK(several.find("name one of the 2 models in GGUF, for example hf:a/b:m-Q5_0.gguf:") !=
        std::string::npos);
  CHECK(several.find("\n  m-Q8_0.gguf, 1.00 MiB") != std::string::npos);
  CHECK(refusal_of({"x-7b-Q4_K_M.gguf", "x-13b-Q4_K_M.gguf"}, "hf:a/b").find("name one of the 2") !=
        std::string::npos);
  CHECK(refusal_of({"model.safetensors", "config.json"}, "hf:a/b:Q8_0").find("no GGUF file") !=
        std::string::npos);
}

TEST_CASE("all parts of a split GGUF come, and none may be missing", "[hub]") {
  const paths split{"q/m-Q8_0-00002-of-00003.gguf", "q/m-Q8_0-00001-of-00003.gguf",
                    "q/m-Q8_0-00003-of-00003.gguf", "m-Q4_0.gguf"};
  const paths parts{"q/m-Q8_0-00001-of-00003.gguf", "q/m-Q8_0-00002-of-00003.gguf",
                    "q/m-Q8_0-00003-of-00003.gguf"};
  CHECK(gguf_of(split, "hf:a/b:Q8_0") == parts);
  CHECK(gguf_of(split, "hf:a/b:q/m-Q8_0-00002-of-00003.gguf") == parts);
  CHECK(refusal_of({"m-00001-of-00002.gguf"}, "hf:a/b")
            .find("m must have 2 parts, the repository has 1") != std::string::npos);
}

TEST_CASE("a listing that no hub sends is refused", "[hub]") {
  const std::string head = R"({"sha": ")" + std::string(40, 'a') + R"(", "siblings": )";
  const std::string sum = std::string(64, 'b');
  const auto refused = [](const std::string& text) {
    return words_of_error([&] { hub::parse_listing(text, "hf:a/b"); });
  };
  const auto file = [&](const std::string& name, const std::string& bytes) {
    return head + R"([{"rfilename": )" + name + R"(, "lfs": {"sha256": ")" + sum +
           R"(", "size": )" + bytes + "}}]}";
  };
  CHECK(refused(file(R"("m.gguf")", "5")).empty());
  CHECK(hub::parse_listing(file(R"("m.gguf")", "5"), "").files.front().bytes == 5);
  for (const char* name :
       {R"("../m.gguf")", R"("/etc/m")", R"("a\u0000b")", R"("a\nb")", "5", "null"})
    CHECK(refused(file(name, "5")).find("must be a relative path") != std::string::npos);
  for (const char* bytes : {"-1", "1e3", "99999999999999999999", "9223372036854775807", "null"})
    CHECK(refused(file(R"("m")", bytes)).find("the size of m") != std::string::npos);
  CHECK(refused(head + R"([{"rfilename": "m", "size": 5}]})").find("the hash of m") !=
        std::string::npos);
  CHECK(refused(R"({"sha": "../../x", "siblings": []})").find("`sha` must be a commit") !=
        std::string::npos);
  for (const auto& text : {std::string(), std::string("[]"), std::string("<html>"), head + "{}}",
                           std::string(100000, '['), head + std::string(500, '[')})
    CHECK_FALSE(refused(text).empty());
  const std::string twice =
      R"({"rfilename": "m", "size": 5, "blobId": ")" + std::string(40, 'c') + R"("})";
  CHECK(refused(head + "[" + twice + "," + twice + "]}").find("listed twice") != std::string::npos);
}
