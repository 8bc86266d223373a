// KV events as bytes, compared with the examples of MessagePack's specification and read back by an
// independent reader. tests/fleet tests that routers and msgspec can read them.
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "net/kv_events/kv_wire.hpp"
#include "tests/catch.hpp"

using namespace twill;
using actors::kv_event;
using actors::kv_medium;
using json = nlohmann::json;

namespace {

kv_event stored(std::uint64_t name, std::optional<std::uint64_t> parent,
                std::vector<std::int32_t> tokens, kv_medium medium = kv_medium::device) {
  return {
      actors::kv_event_kind::stored, medium,
      std::make_shared<const actors::kv_block>(actors::kv_block{name, parent, std::move(tokens)})};
}

json read(const std::string& payload) {
  return json::from_msgpack(payload);
}

} // namespace

TEST_CASE("An event is a map of the members that every reader knows") {
  const std::uint64_t name = 0xfedcba9876543210ULL;
  const auto first = stored(name, {}, {1, 2, 300}),
             second = stored(7, name, {4, 5, 6}, kv_medium::host);
  const std::vector<kv_event> events{
      {}, first, second, {actors::kv_event_kind::removed, kv_medium::disk, first.block}};
  const auto all = net::kv_payloads(events, 12.5, net::kv_event_form::map);
  REQUIRE(all.size() == 1);
  CHECK(read(all.front()) ==
        json::array({12.5,
                     {{{"type", "AllBlocksCleared"}},
                      {{"type", "BlockStored"},
                       {"block_hashes", {name}},
                       {"parent_block_hash", nullptr},
                       {"token_ids", {1, 2, 300}},
                       {"block_size", 3},
                       {"lora_id", nullptr},
                       {"medium", "GPU"},
                       {"lora_name", nullptr}},
                      {{"type", "BlockStored"},
                       {"block_hashes", {7}},
                       {"parent_block_hash", name},
                       {"token_ids", {4, 5, 6}},
                       {"block_size", 3},
                       {"lora_id", nullptr},
                       {"medium", "CPU"},
                       {"lora_name", nullptr}},
                      {{"type", "BlockRemoved"}, {"block_hashes", {name}}, {"medium", "DISK"}}},
                     0}));
}

TEST_CASE("An event is an array of its values where that is asked for") {
  const auto block = stored(9, 8, {1, 2});
  const std::vector<kv_event> events{
      {}, block, {actors::kv_event_kind::removed, kv_medium::device, block.block}};
  const auto all = net::kv_payloads(events, 1.5, net::kv_event_form::array);
  REQUIRE(all.size() == 1);
  CHECK(read(all.front())[1] ==
        json::array({json::array({"AllBlocksCleared"}),
                     {"BlockStored", {9}, 8, {1, 2}, 2, nullptr, "GPU", nullptr},
                     {"BlockRemoved", {9}, "GPU"}}));
}

TEST_CASE("Bytes of a batch, member by member") {
  const auto all = net::kv_payloads(std::vector<kv_event>{{}}, 2.0 / 3, net::kv_event_form::map);
  // fixarray 3, float 64, fixarray 1, fixmap 1, fixstr 4, fixstr 16, positive fixint 0
  CHECK(all.front() == std::string("\x93\xcb\x3f\xe5\x55\x55\x55\x55\x55\x55\x91\x81\xa4type\xb0"
                                   "AllBlocksCleared\x00",
                                   35));
  CHECK(net::kv_sequence(0x0102030405060708ULL) == "\1\2\3\4\5\6\7\10");
  CHECK(net::kv_sequence(0) == std::string(8, '\0'));
}

TEST_CASE("Many events are cut into payloads of bounded size, and none is lost") {
  for (const int width : {8, 16, 256}) {
    std::vector<kv_event> events;
    for (std::uint64_t i = 0; i < 3000; ++i) {
      events.push_back(
          stored(~i, i + (1ULL << 63U),
                 std::vector<std::int32_t>(static_cast<std::size_t>(width), 0x7fffffff)));
      if (i % 3 == 0)
        events.push_back({actors::kv_event_kind::removed, kv_medium::device, events.back().block});
    }
    for (const auto form : {net::kv_event_form::map, net::kv_event_form::array}) {
      const auto all = net::kv_payloads(events, 1.5, form);
      std::size_t n = 0;
      for (const auto& payload : all) {
        CHECK(payload.size() <= net::longest_kv_payload);
        n += read(payload)[1].size();
      }
      CHECK(n == events.size());
      CHECK(all.size() > 3);
    }
  }
  CHECK(net::kv_payloads({}, 1.5, net::kv_event_form::map).empty());
}
