// Where weights are placed: what fits, what the user fixed, and what is impossible.
#include "models/offload/choose_placement.hpp"

#include <array>
#include <string>

#include "config/base/units.hpp"
#include "tests/catch.hpp"

using namespace twill;
using namespace twill::models::offload;
using models::errc;

namespace {

/// Ten layers of 100 MiB (60 in the MLP), tables of 200 MiB, and 10 MiB that always stay.
placement_room ten_layers(std::int64_t device_bytes, std::int64_t host_bytes) {
  placement_room room;
  room.weights.tables = 200 * mib;
  room.weights.layers = 1000 * mib;
  room.weights.mlps = 600 * mib;
  room.weights.small = 10 * mib;
  room.n_layers = 10;
  room.device_bytes = device_bytes;
  room.host_bytes = host_bytes;
  return room;
}

shares chosen(const config::options& options, const placement_room& room) {
  const auto placed = choose_placement(options, room);
  INFO((placed.ok() ? "" : placed.detail()));
  REQUIRE(placed.ok());
  return placed.value().weights;
}

} // namespace

TEST_CASE("all weights are placed on the device if they fit", "[offload]") {
  const shares all = chosen({}, ten_layers(1210 * mib, 0));
  CHECK(all.device == 100);
  CHECK(all.host == 0);
  CHECK(chosen({}, ten_layers(1210 * mib - 1, 0)).device < 100);
}

TEST_CASE("weights that do not fit get what is left beside the ring, then the host, then the disk",
          "[offload]") {
  // The ring takes 300 MiB, small tensors take 10 MiB, and 4 MiB are added for rounding.
  config::options options;
  for (const auto& [device, host, on_device, on_host] :
       {std::array{314, 0, 0, 0}, std::array{314, 120, 0, 10}, std::array{914, 120, 50, 10},
        std::array{914, 600, 50, 50}, std::array{914, 2000, 50, 50}}) {
    CAPTURE(device, host);
    const shares placed = chosen(options, ten_layers(device * mib, host * mib));
    CHECK(placed.device == on_device);
    CHECK(placed.host == on_host);
  }
  options.offload.ring_layers = 2;
  CHECK(chosen(options, ten_layers(814 * mib, 0)).device == 50);
  placement_room parts = ten_layers(734 * mib, 0); // a ring of two MLPs of 60 MiB, and 14 MiB
  parts.sep_layer = true;
  options.offload.sep_layer = true;
  CHECK(chosen(options, parts).device == 50);
}

TEST_CASE("a device without room for the ring is refused with the numbers", "[offload]") {
  const auto refused = choose_placement({}, ten_layers(314 * mib - 1, 0));
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.code() == errc::out_of_memory);
  for (const char* part : {"`device.memory`", "314 MiB", "3 layers of 100 MiB"})
    CHECK(refused.detail().find(part) != std::string::npos);
  config::options fixed;
  fixed.offload.device_percent = 0;
  CHECK_FALSE(choose_placement(fixed, ten_layers(314 * mib - 1, 0)).ok());
  CHECK(choose_placement(fixed, ten_layers(314 * mib, 0)).ok());
}

TEST_CASE("percentages that the user fixed are kept, and only the other one is chosen",
          "[offload]") {
  config::options options;
  options.offload.device_percent = 30;
  shares placed = chosen(options, ten_layers(914 * mib, 120 * mib));
  CHECK(placed.device == 30);
  CHECK(placed.host == 10);
  options.offload.host_percent = 70;
  placed = chosen(options, ten_layers(914 * mib, 0));
  CHECK(placed.device == 30);
  CHECK(placed.host == 70);
  options.offload.host_percent = 71;
  const auto refused = choose_placement(options, ten_layers(914 * mib, 0));
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.code() == errc::bad_option);
  CHECK(refused.detail().find("30 + 71") != std::string::npos);
  options.offload.device_percent = -1;
  placed = chosen(options, ten_layers(914 * mib, 0));
  CHECK(placed.device == 50);
  CHECK(placed.host == 50);
  options.offload.host_percent = 0;
  CHECK(chosen(options, ten_layers(914 * mib, 2000 * mib)).host == 0);
}

TEST_CASE("how weights are streamed is what the user said, and a line reports it", "[offload]") {
  config::options options;
  options.offload.dir = "/somewhere";
  options.offload.reads = "cached";
  options.offload.ring_layers = 4;
  options.device.link_gbps = 16;
  const placement_room room = ten_layers(1014 * mib, 120 * mib);
  const auto placed = choose_placement(options, room);
  REQUIRE(placed.ok());
  CHECK_FALSE(placed.value().direct_reads);
  CHECK(placed.value().ring_layers == 4);
  CHECK(placed.value().link_bytes_per_second == 16e9);
  const std::string line = describe(placed.value(), room);
  for (const char* part : {"50 % device, 10 % host, 40 % disk (/somewhere, reads through the page",
                           "ring of 4 layers (400 MiB)", "simulated link of 16 GB/s"})
    CHECK(line.find(part) != std::string::npos);
  options.offload.dir = "";
  options.offload.reads = "direct";
  options.device.link_gbps = 0;
  const std::string other = describe(choose_placement(options, room).value(), room);
  CHECK(other.find("(temporary folder, direct reads)") != std::string::npos);
  CHECK(other.find("link") == std::string::npos);
  const placement_room roomy = ten_layers(1210 * mib, 0);
  const std::string resident = describe(choose_placement(options, roomy).value(), roomy);
  CHECK(resident.find("100 % device, 0 % host, 0 % disk") != std::string::npos);
  CHECK(resident.find("ring") == std::string::npos);
}
