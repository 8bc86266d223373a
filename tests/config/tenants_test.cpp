// [[tenants]] in a configuration file and as a setting, and the file of further API keys
// (server.keys_file): what is read, which place an error names, and that everything is printed
// back.
#include "config/tenants.hpp"

#include <string>

#include "config/load.hpp"
#include "config/reload.hpp"
#include "tests/catch.hpp"

using namespace twill::config;

namespace {

std::string digest(char c) {
  return std::string(64, c);
}

twill::result<options, load_errc> load_toml(const std::string& text,
                                            const std::vector<setting>& settings = {}) {
  return load_text(text, "t.toml", settings);
}

std::string error_of(const std::string& text, const std::vector<setting>& settings = {}) {
  const auto loaded = load_toml(text, settings);
  return loaded.ok() ? "(loaded)" : loaded.detail();
}

const std::string two = "[[tenants]]\nname = \"alice\"\nkey_sha256 = \"" + digest('a') +
                        "\"\nweight = 3\nmax_running = 2\nmax_queued = 5\n"
                        "tokens_per_minute = 1000\nmodels = [\"m\"]\nadmin = true\n"
                        "[[tenants]]\nname = \"bob\"\nkey_sha256 = [\"" +
                        digest('b') + "\", \"" + digest('c') + "\"]\n";

} // namespace

TEST_CASE("tenants are read, printed back, and seen to change", "[config]") {
  const auto loaded = load_toml(two);
  if (!loaded.ok()) FAIL(loaded.detail());
  const auto& tenants = loaded.value().tenants;
  REQUIRE(tenants.size() == 2);
  CHECK(tenants[0] == tenant_options{"alice", {digest('a')}, 3, 2, 5, 1000, {"m"}, true});
  CHECK(tenants[1] == tenant_options{"bob", {digest('b'), digest('c')}});
  const auto printed = print_config(loaded.value());
  CHECK(printed.find("\n[[tenants]]\n") != std::string::npos);
  const auto again = load_text(printed, "printed", {});
  if (!again.ok()) FAIL(again.detail());
  CHECK(again.value().tenants == tenants);
  CHECK(changed_keys(loaded.value(), again.value()).empty());
  CHECK(changed_keys(options{}, loaded.value()) == std::vector<std::string>{"tenants"});
  CHECK(load_toml("tenants = []").value().tenants.empty());
  // A setting replaces the whole list.
  const auto set =
      load_toml(two, {{"--set", "tenants", "[{name='eve', key_sha256='" + digest('e') + "'}]"}});
  REQUIRE(set.ok());
  REQUIRE(set.value().tenants.size() == 1);
  CHECK(set.value().tenants[0].name == "eve");
}

TEST_CASE("errors of tenants name the place, the rule and the value", "[config]") {
  const std::string keyed = "key_sha256 = \"" + digest('1') + "\"\n";
  CHECK(error_of("[[tenants]]\nname = \"a\"\nwieght = 2\n" + keyed) ==
        "t.toml:3:1: unknown key `tenants.wieght`; did you mean `tenants.weight`?");
  CHECK(error_of("[[tenants]]\nname = \"a\"\nweight = 0\n" + keyed) ==
        "t.toml:3:10: `tenants.weight` must be between 1 and 1000, got 0");
  CHECK(error_of("[[tenants]]\nname = \"a b\"\n" + keyed)
            .find("t.toml:2:8: `tenants.name` must be "
                  "1 to 64 letters") == 0);
  CHECK(error_of("[[tenants]]\nname = \"key-1\"\n" + keyed).find("\"key-\"") != std::string::npos);
  CHECK(error_of("[[tenants]]\n" + keyed) ==
        "t.toml:1:1: `tenants.name` must be given in each `[[tenants]]`");
  CHECK(error_of("[[tenants]]\nname = \"a\"\n")
            .find("t.toml:1:1: `tenants.key_sha256` must be "
                  "given") == 0);
  CHECK(error_of("[[tenants]]\nname = \"a\"\n[server]\nkeys_file = \"/k\"") == "(loaded)");
  // A user may have written the key itself by mistake: the message must not repeat it.
  const auto plain = error_of("[[tenants]]\nname = \"a\"\nkey_sha256 = \"twk_secret\"\n");
  CHECK(plain.find("t.toml:3:14: `tenants.key_sha256` must be 64 lower-case hex digits") == 0);
  CHECK(plain.find("twk_secret") == std::string::npos);
  CHECK(error_of(two + "[[tenants]]\nname = \"bob\"\n" + keyed) ==
        "t.toml:14:8: `tenants.name` must differ from every other, got \"bob\", which stands at "
        "t.toml:11:8 as well");
  CHECK(error_of(two + "[[tenants]]\nname = \"carl\"\nkey_sha256 = \"" + digest('c') + "\"\n")
            .find("t.toml:15:14: `tenants.key_sha256` must differ from every other") == 0);
  CHECK(error_of("[tenants]\nname = \"a\"\n").find("must be a list of tables") !=
        std::string::npos);
  CHECK(error_of("tenants = [1]").find("t.toml:1:11: `tenants` must be a list of tables") == 0);
  CHECK(error_of("[[tenant]]\nname = \"a\"\n") ==
        "t.toml:1:3: unknown table `[[tenant]]`; did you mean `[[tenants]]`?");
  CHECK(error_of("", {{"--set", "tenants", "alice"}}).find("--set: `tenants` must be a list") == 0);
  // Several errors, each on a line.
  const auto many = error_of("[[tenants]]\nname = 3\nadmin = 1\n" + keyed);
  CHECK(many.find("t.toml:2:8: `tenants.name` must be a string, got 3") != std::string::npos);
  CHECK(many.find("t.toml:3:9: `tenants.admin` must be true or false, got 1") != std::string::npos);
}

TEST_CASE("a file adds keys to tenants, and makes tenants of new names", "[config]") {
  const std::string text = "# keys\n\nalice sha256:" + digest('1') +
                           "\r\n  bob\tsha256:" + digest('2') +
                           " # his\nalice sha256:" + digest('3');
  const auto added = add_keys({{"alice", {digest('a')}, 3}}, text, "keys");
  if (!added.ok()) FAIL(added.detail());
  REQUIRE(added.value().size() == 2);
  CHECK(added.value()[0].key_sha256 ==
        std::vector<std::string>{digest('a'), digest('1'), digest('3')});
  CHECK(added.value()[0].weight == 3);
  CHECK(added.value()[1] == tenant_options{"bob", {digest('2')}});
  CHECK(find_tenant(added.value(), "bob") == &added.value()[1]);
  CHECK(find_tenant(added.value(), "eve") == nullptr);
  CHECK(may_use(nullptr, "m"));
  CHECK(may_use(&added.value()[0], "m"));
}

TEST_CASE("what is wrong in a file of keys is named by line, and keys are not repeated",
          "[config]") {
  const auto error = [](const std::string& text) {
    const auto added = add_keys({{"alice", {digest('a')}}}, text, "keys");
    return added.ok() ? std::string("(read)") : added.detail();
  };
  CHECK(error("\nalice\n") == "keys:2:1: a line must be NAME sha256:HEX, or begin with #");
  CHECK(error("alice sha256:" + digest('1') + " more") ==
        "keys:1:1: a line must be NAME sha256:HEX, or begin with #");
  CHECK(error("a/b sha256:" + digest('1')).find("keys:1:1: the name must be 1 to 64") == 0);
  const auto plain = error("bob twk_secret\ncarl sha256:xyz");
  CHECK(plain.find("keys:1:5: the key must be sha256: and 64") == 0);
  CHECK(plain.find("\nkeys:2:6: the key must be sha256: and 64") != std::string::npos);
  CHECK(plain.find("twk_secret") == std::string::npos);
  CHECK(error("bob sha256:" + digest('a')) ==
        "keys:1:5: the key stands at the configuration already; remove one");
  CHECK(error("bob sha256:" + digest('1') + "\ncarl sha256:" + digest('1')) ==
        "keys:2:6: the key stands at keys:1:5 already; remove one");
}

TEST_CASE("an address for administrators needs one", "[config]") {
  CHECK(load_toml("[server]\nadmin_listen = \"unix:/run/a.sock\"").ok());
  CHECK(error_of("[server]\nadmin_listen = \"127.0.0.1:1\"") ==
        "t.toml:2:16: `server.admin_listen` must be unix:/PATH unless a tenant has `admin = true`, "
        "because each request there needs such a tenant's key; got \"127.0.0.1:1\"");
  CHECK(load_toml("[server]\nadmin_listen = \"127.0.0.1:1\"\n" + two).ok());
  CHECK(
      error_of("[server]\nadmin_listen = \"nowhere\"") ==
      "t.toml:2:16: `server.admin_listen` must be HOST:PORT, unix:/PATH or empty, got \"nowhere\"");
}

TEST_CASE("a reload takes over tenants and limits, and names each key that differs", "[config]") {
  const auto before = load_toml(two);
  REQUIRE(before.ok());
  auto loaded = before.value();
  loaded.tenants[0].weight = 7;
  loaded.tenants[1].key_sha256 = {digest('d')};
  loaded.tenants.push_back({"carol", {digest('e')}});
  loaded.limits.max_choices = 3;
  loaded.server.api_keys = {"hush"};
  loaded.server.name = "gpu1";
  loaded.server.threads = 2;
  loaded.scheduler.max_queued = 5;
  const auto changes = changes_between(before.value(), loaded);
  const std::vector<key_change> wanted{
      {"scheduler.max_queued", "1024", "5"},
      {"server.name", "\"\"", "\"gpu1\""},
      {"server.threads", "1", "2"},
      {"server.api_keys", "0 secrets", "1 secret"},
      {"limits.max_choices", "16", "3"},
      {"tenants.alice.weight", "3", "7"},
      {"tenants.bob.key_sha256", "2 secrets", "1 secret"},
      {"tenants.carol", "absent", "present"},
  };
  CHECK(changes == wanted);
  const auto in_force = take_reloads(before.value(), loaded);
  CHECK(in_force.tenants == loaded.tenants);
  CHECK(in_force.limits.max_choices == 3);
  CHECK(in_force.server.api_keys == loaded.server.api_keys);
  CHECK(in_force.server.name.empty());
  CHECK(in_force.server.threads == 1);
  const auto left = changes_between(in_force, loaded);
  REQUIRE(left.size() == 3);
  for (const auto& one : left)
    CHECK_FALSE(reloads(one.key));
  CHECK(changes_between(loaded, before.value()).back() ==
        key_change{"tenants.carol", "present", "absent"});
}
