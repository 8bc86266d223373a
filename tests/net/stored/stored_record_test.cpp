// Events as stored bytes: round trips of random events, and bytes that were never written by the
// daemon.
#include <cmath>
#include <limits>
#include <random>

#include "net/stored/stored_head.hpp"
#include "net/stored/stored_record.hpp"
#include "tests/catch.hpp"
#include "tests/net/support/codec_support.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::testing;

namespace {

class event_maker {
public:
  explicit event_maker(unsigned seed) : random_(seed) {}

  bool coin() { return below(2) == 0; }
  std::size_t below(std::size_t n) { return random_() % n; }
  std::int32_t number() {
    static constexpr std::int32_t edges[] = {0,
                                             1,
                                             -1,
                                             127,
                                             128,
                                             16383,
                                             16384,
                                             std::numeric_limits<std::int32_t>::max(),
                                             std::numeric_limits<std::int32_t>::min()};
    return coin() ? edges[below(std::size(edges))] : static_cast<std::int32_t>(random_());
  }
  std::string bytes() {
    std::string out(below(4) == 0 ? below(300) : below(5), ' ');
    for (auto& c : out)
      c = static_cast<char>(random_());
    return out;
  }
  float real() {
    static const float edges[] = {0.0f,
                                  -0.0f,
                                  -1.5f,
                                  -std::numeric_limits<float>::infinity(),
                                  std::numeric_limits<float>::denorm_min(),
                                  std::nanf("")};
    return edges[below(std::size(edges))];
  }
  actors::token_logprob token() { return {number(), bytes(), real()}; }
  std::vector<actors::token_output> tokens() {
    std::vector<actors::token_output> all(below(4));
    for (auto& one : all) {
      one.chosen = token();
      one.top.resize(below(4));
      for (auto& other : one.top)
        other = token();
    }
    return all;
  }
  actors::event event() {
    actors::event ev;
    if (coin()) ev.choice = std::abs(number() / 2);
    ev.started = coin();
    ev.last = coin();
    if (coin()) ev.tokens = tokens();
    if (coin()) ev.text = bytes();
    if (coin())
      for (auto n = below(4); n > 0; --n)
        ev.parts.push_back(
            {static_cast<actors::output_part_kind>(below(5)), bytes(), number(), coin(), bytes()});
    if (coin()) {
      ev.finish = static_cast<actors::finish_reason>(below(3));
      ev.stop_string = bytes();
      ev.stop_token = number();
    }
    if (coin())
      ev.error =
          actors::request_error{static_cast<actors::errc>(below(
                                    static_cast<std::size_t>(actors::errc::model_changed) + 1)),
                                bytes(), bytes(), number()};
    if (coin())
      for (auto n = below(5); n > 0; --n)
        ev.prompt_ids.push_back(number());
    if (coin()) ev.prompt_scores = tokens();
    ev.use = {number(), number(), number()};
    return ev;
  }

private:
  std::mt19937 random_;
};

bool same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

bool same(const actors::token_logprob& a, const actors::token_logprob& b) {
  return a.id == b.id && a.bytes == b.bytes && same(a.logprob, b.logprob);
}

bool same(const std::vector<actors::token_output>& a, const std::vector<actors::token_output>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return same(x.chosen, y.chosen) &&
           std::equal(x.top.begin(), x.top.end(), y.top.begin(), y.top.end(),
                      [](const auto& p, const auto& q) { return same(p, q); });
  });
}

bool same(const actors::event& a, const actors::event& b) {
  const auto same_part = [](const actors::output_part& x, const actors::output_part& y) {
    return x.kind == y.kind && x.text == y.text && x.call == y.call && x.complete == y.complete &&
           x.call_id == y.call_id;
  };
  const bool same_error =
      a.error.has_value() == b.error.has_value() &&
      (!a.error ||
       (a.error->code == b.error->code && a.error->message == b.error->message &&
        a.error->param == b.error->param && a.error->retry_after_s == b.error->retry_after_s));
  return a.choice == b.choice && a.started == b.started && a.last == b.last &&
         same(a.tokens, b.tokens) && a.text == b.text &&
         std::equal(a.parts.begin(), a.parts.end(), b.parts.begin(), b.parts.end(), same_part) &&
         a.finish == b.finish && a.stop_string == b.stop_string && a.stop_token == b.stop_token &&
         same_error && a.prompt_ids == b.prompt_ids && same(a.prompt_scores, b.prompt_scores) &&
         a.use.prompt_tokens == b.use.prompt_tokens && a.use.cached_tokens == b.use.cached_tokens &&
         a.use.completion_tokens == b.use.completion_tokens;
}

std::size_t memory_of(const std::vector<actors::token_output>& all) {
  std::size_t bytes = all.capacity() * sizeof(actors::token_output);
  for (const auto& one : all) {
    bytes += one.chosen.bytes.capacity() + one.top.capacity() * sizeof(actors::token_logprob);
    for (const auto& other : one.top)
      bytes += other.bytes.capacity();
  }
  return bytes;
}

std::size_t memory_of(const actors::event& ev) {
  std::size_t bytes = sizeof ev + ev.text.capacity() + memory_of(ev.tokens) +
                      memory_of(ev.prompt_scores) + ev.prompt_ids.capacity() * 4 +
                      ev.parts.capacity() * sizeof(actors::output_part);
  for (const auto& part : ev.parts)
    bytes += part.text.capacity() + part.call_id.capacity();
  return bytes;
}

} // namespace

TEST_CASE("A record holds an event whole") {
  event_maker make(1);
  for (int i = 0; i < 3000; ++i) {
    const auto ev = make.event();
    const auto bytes = write_record(ev);
    const auto back = read_record(bytes);
    REQUIRE(back.has_value());
    REQUIRE(same(*back, ev));
    REQUIRE(write_record(*back) == bytes);
    REQUIRE_FALSE(is_resume_mark(bytes));
    REQUIRE_FALSE(read_record(bytes.substr(0, bytes.size() - 1)).has_value());
    REQUIRE_FALSE(read_record(bytes + '\0').has_value());
  }
  CHECK(is_resume_mark(resume_mark()));
  CHECK_FALSE(read_record(resume_mark()).has_value());
  CHECK_FALSE(read_record("").has_value());
}

TEST_CASE("Any bytes are read as a whole event or not at all, in memory of their size") {
  event_maker make(2);
  for (int i = 0; i < 20000; ++i) {
    auto bytes = write_record(make.event());
    for (auto n = 1 + make.below(4); n > 0 && !bytes.empty(); --n) {
      const auto at = make.below(bytes.size());
      switch (make.below(4)) {
      case 0:
        bytes[at] = static_cast<char>(make.number());
        break;
      case 1:
        bytes.erase(at, 1 + make.below(3));
        break;
      case 2:
        bytes.insert(at, 1, static_cast<char>(255));
        break;
      default:
        bytes.resize(at);
        break;
      }
    }
    const auto read = read_record(bytes);
    if (!read) continue;
    REQUIRE(memory_of(*read) <= sizeof(actors::event) + 32 * bytes.size() + 64);
    REQUIRE(same(*read_record(write_record(*read)), *read));
  }
  // Lengths without the bytes that they announce.
  for (const char part : {8, 16, 32})
    for (std::size_t n = 1; n < 10; ++n)
      CHECK_FALSE(read_record(std::string(1, part) + std::string(n, '\xff') + '\x01').has_value());
}

TEST_CASE("What was drawn is read from the records") {
  std::vector<std::string> records;
  CHECK_FALSE(read_drawn(records, 1).over);
  records.push_back(write_record(started()));
  records.push_back(write_record(piece("a", 5)));
  records.push_back(resume_mark());
  records.push_back("damaged");
  records.push_back(write_record(piece("b", 6)));
  records.push_back(write_record(piece("of no choice", 7, 9)));
  auto drawn = read_drawn(records, 1);
  CHECK(drawn.started);
  CHECK_FALSE(drawn.over);
  CHECK(drawn.resumes == 1);
  REQUIRE(drawn.made.size() == 1);
  CHECK(drawn.made.front().tokens == std::vector<std::int32_t>{5, 6});
  records.push_back(write_record(finished(actors::finish_reason::stop, false)));
  CHECK(read_drawn(records, 1).over);
  CHECK_FALSE(read_drawn(records, 2).over);
  records.push_back(write_record(failed(actors::errc::timed_out, "late")));
  CHECK(read_drawn(records, 2).over);
}

TEST_CASE("A head is read back, however deep its body is") {
  stored_head head;
  head.id = "resp_1";
  head.tenant = "ann \xc3\xa9";
  head.model = "m";
  head.client_id = "req \"1\"";
  head.created_unix_s = 1'700'000'000;
  head.deadline_unix_ms = 1'700'000'000'123;
  head.seed = std::numeric_limits<std::uint64_t>::max();
  head.background = true;
  std::string deep = "1";
  for (int i = 0; i < 63; ++i)
    deep = i % 2 == 0 ? "[" + deep + "]" : "{\"a\":" + deep + "}";
  deep = "{\"input\":" + deep + "}";
  const auto body = json(deep); // 64 levels: as many as clients may send
  head.asked =
      value_object{{"body", body}, {"previous", value_object{{"messages", value_list{body}}}}};
  const auto back = read_head(write_head(head));
  REQUIRE(back.has_value());
  CHECK(back->id == head.id);
  CHECK(back->tenant == head.tenant);
  CHECK(back->client_id == head.client_id);
  CHECK(back->created_unix_s == head.created_unix_s);
  CHECK(back->deadline_unix_ms == head.deadline_unix_ms);
  CHECK(back->seed == head.seed);
  CHECK(back->background);
  CHECK(back->asked == head.asked);
  for (const auto* text :
       {"", "{", "[]", "{}", R"({"id":"a"})", R"({"id":"a","asked":1})", R"({"id":1,"asked":{}})"})
    CHECK_FALSE(read_head(text).has_value());
}
