// The bytes of OTLP, compared with those that OpenTelemetry's own encoder writes for the same spans
// (Python's opentelemetry-proto 1.4).
#include "net/tracing/otlp.hpp"

#include <array>
#include <string>

#include "tests/catch.hpp"

using namespace twill::net;

namespace {

std::string hex_of(const std::string& bytes) {
  static const char* digits = "0123456789abcdef";
  std::string out;
  for (const unsigned char c : bytes) {
    out += digits[c >> 4];
    out += digits[c & 15];
  }
  return out;
}

} // namespace

TEST_CASE("spans are the bytes that OpenTelemetry's encoder makes of them") {
  span whole, least;
  for (std::size_t i = 0; i < 16; ++i)
    whole.trace[i] = static_cast<std::uint8_t>(i + 1);
  for (std::size_t i = 0; i < 8; ++i) {
    whole.id[i] = static_cast<std::uint8_t>(i + 17);
    whole.parent[i] = static_cast<std::uint8_t>(i + 25);
  }
  whole.name = "chat m";
  whole.kind = span_kind::server;
  whole.start_unix_ns = 990'000'000;
  whole.end_unix_ns = 1'000'000'000;
  const std::string long_text(130, 'b');
  whole.about = {{"n", std::int64_t{300}},
                 {"minus", std::int64_t{-1}},
                 {"share", 0.5},
                 {"on", true},
                 {"stops", std::vector<std::string>{"a", long_text}}};
  whole.failed = true;
  least.name = "queue";
  least.start_unix_ns = 5;
  least.end_unix_ns = 6;

  const std::string made =
      hex_of(export_request({{"service.name", std::string("twill")}}, {whole, least}));
  const std::string resource = "0a190a170a0c736572766963652e6e616d6512070a057477696c6c";
  const std::string first =
      "0a100102030405060708090a0b0c0d0e0f10120811121314151617182208191a1b1c1d1e1f202a066368"
      "6174206d3002398033023b000000004100ca9a3b000000004a080a016e120318ac024a140a056d696e75"
      "73120b18ffffffffffffffffff014a120a057368617265120921000000000000e03f4a080a026f6e1202"
      "10014a9a010a0573746f70731290012a8d010a030a01610a85010a8201" +
      hex_of(long_text) + "7a021802";
  const std::string second =
      "0a1000000000000000000000000000000000120800000000000000002a05717565756530013905000000"
      "00000000410600000000000000";
  // A span is field 2 of its scope; its length stands before it.
  CHECK(made.find(resource) != std::string::npos);
  CHECK(made.find("12a102" + first + "1237" + second) != std::string::npos);
  CHECK(made.ends_with(second));
}
