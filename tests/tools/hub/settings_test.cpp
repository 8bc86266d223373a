#include "tools/common/hub/settings.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/catch.hpp"
#include "tests/tools/fake_server.hpp"
#include "tests/tools/variables.hpp"

using namespace twill::tools;
using namespace twill::tests;

namespace {

/// Hides the environment of the machine that runs the test.
struct clean_environment {
  variable_scope scopes[16] = {{"HF_ENDPOINT", nullptr},
                               {"HF_HOME", nullptr},
                               {"HF_HUB_CACHE", nullptr},
                               {"HUGGINGFACE_HUB_CACHE", nullptr},
                               {"HF_TOKEN", nullptr},
                               {"HUGGING_FACE_HUB_TOKEN", nullptr},
                               {"HF_TOKEN_PATH", nullptr},
                               {"HF_HUB_OFFLINE", nullptr},
                               {"TRANSFORMERS_OFFLINE", nullptr},
                               {"XDG_CACHE_HOME", nullptr},
                               {"HTTPS_PROXY", nullptr},
                               {"https_proxy", nullptr},
                               {"HTTP_PROXY", nullptr},
                               {"http_proxy", nullptr},
                               {"NO_PROXY", nullptr},
                               {"no_proxy", nullptr}};
  variable_scope home{"HOME", "/home/me"};
  variable_scope all_upper{"ALL_PROXY", nullptr}, all_lower{"all_proxy", nullptr};
};

} // namespace

TEST_CASE("the cache is where huggingface_hub has it", "[hub]") {
  const clean_environment clean;
  CHECK(hub::cache_of_environment() == "/home/me/.cache/huggingface/hub");
  const variable_scope cache("XDG_CACHE_HOME", "/c");
  CHECK(hub::cache_of_environment() == "/c/huggingface/hub");
  const variable_scope home("HF_HOME", "~/hf");
  CHECK(hub::cache_of_environment() == "/home/me/hf/hub");
  const variable_scope old("HUGGINGFACE_HUB_CACHE", "/old");
  CHECK(hub::cache_of_environment() == "/old");
  const variable_scope direct("HF_HUB_CACHE", "/hub");
  CHECK(hub::cache_of_environment() == "/hub");
}

TEST_CASE("the token comes from the variable, else from the file", "[hub]") {
  const clean_environment clean;
  const auto folder = std::filesystem::temp_directory_path() / "twill-hub-settings-test";
  std::filesystem::create_directories(folder);
  const variable_scope home("HF_HOME", folder.c_str());
  CHECK(hub::settings_of_environment().token.empty());
  std::ofstream(folder / "token") << "hf_file\n";
  CHECK(hub::settings_of_environment().token == "hf_file");
  const variable_scope named("HF_TOKEN_PATH", "/nowhere");
  CHECK(hub::settings_of_environment().token.empty());
  const variable_scope token("HF_TOKEN", " hf_variable \n");
  CHECK(hub::settings_of_environment().token == "hf_variable");
  const variable_scope hostile("HF_TOKEN", "hf_x\r\nX-Evil: 1");
  CHECK(words_of_error([] { hub::settings_of_environment(); }).starts_with("HF_TOKEN must be"));
  std::filesystem::remove_all(folder);
}

TEST_CASE("the hub's address may be that of a mirror", "[hub]") {
  const clean_environment clean;
  CHECK(hub::endpoint_of_environment().text() == "https://huggingface.co");
  const variable_scope mirror("HF_ENDPOINT", "http://mirror:8080/hf/");
  CHECK(hub::endpoint_of_environment().text() == "http://mirror:8080/hf");
  for (const char* bad : {"mirror", "ftp://mirror", "https://me:secret@mirror", "https://m/?x"}) {
    const variable_scope wrong("HF_ENDPOINT", bad);
    CHECK(
        words_of_error([] { hub::endpoint_of_environment(); }).starts_with("HF_ENDPOINT must be"));
  }
}

TEST_CASE("proxies are those of the usual variables", "[hub]") {
  const clean_environment clean;
  const auto proxy_of = [](const char* address) {
    const auto settings = hub::settings_of_environment();
    const auto* proxy = settings.proxies.for_address(*hub::parse_url(address));
    return proxy == nullptr ? std::string("none")
                            : proxy->credentials + "@" + proxy->address.authority();
  };
  CHECK(proxy_of("https://huggingface.co/") == "none");
  const variable_scope secure("HTTPS_PROXY", "http://me:pass%20word@proxy:3128");
  const variable_scope plain("http_proxy", "other:8080");
  CHECK(proxy_of("https://huggingface.co/") == "me:pass word@proxy:3128");
  CHECK(proxy_of("http://huggingface.co/") == "@other:8080");
  const variable_scope direct("NO_PROXY", "localhost, .corp.example ,huggingface.co");
  CHECK(proxy_of("https://huggingface.co/") == "none");
  CHECK(proxy_of("https://cdn.huggingface.co/") == "none");
  CHECK(proxy_of("https://nothuggingface.co/") == "me:pass word@proxy:3128");
  CHECK(proxy_of("https://a.corp.example/") == "none");
  const variable_scope everything("NO_PROXY", "*");
  CHECK(proxy_of("https://example.org/") == "none");
  const variable_scope socks("HTTPS_PROXY", "socks5://proxy:1080");
  CHECK(words_of_error([] { hub::settings_of_environment(); }).starts_with("HTTPS_PROXY must be"));
}
