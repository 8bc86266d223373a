// The small parts of net: error map, engine requests, response store, keys, heads, metrics.
#include "net/api_keys.hpp"
#include "net/connection/engine_requests.hpp"
#include "net/error_map.hpp"
#include "net/http/reply_head.hpp"
#include "net/metrics.hpp"
#include "net/protocol/openai/response_store.hpp"
#include "net/random_id.hpp"
#include "tests/catch.hpp"
#include "tests/net/support/codec_support.hpp"

#include <set>

using namespace twill;
using namespace twill::net;
using namespace twill::testing;

TEST_CASE("Every error code has a status, a close code, a type and a code") {
  const auto check = [](const wire_error& w) {
    CHECK(w.http_status >= 400);
    CHECK(w.http_status < 600);
    CHECK(w.close_code >= 1001);
    CHECK(w.close_code <= 1013);
    CHECK(!w.type.empty());
    CHECK(!w.code.empty());
    CHECK((w.http_status == 429 || w.http_status == 503) == (w.retry_after_s > 0));
  };
  std::set<std::string_view> codes;
  for (int i = 0; i <= static_cast<int>(errc::stream_limit); ++i) {
    check(map_error(static_cast<errc>(i)));
    CHECK(codes.insert(map_error(static_cast<errc>(i)).code).second);
  }
  for (int i = 0; i <= static_cast<int>(actors::errc::model_changed); ++i)
    check(map_error(static_cast<actors::errc>(i)));
  CHECK(map_error(actors::errc::unknown_model).http_status == 404);
  CHECK(map_error(actors::errc::queue_full).http_status == 429);
  CHECK(map_error(actors::errc::not_ready).http_status == 503);
  CHECK(map_error(errc::body_too_large).http_status == 413);
  CHECK(map_error(errc::binary_frame).close_code == 1003);
}

TEST_CASE("An error body is OpenAI's, and overload says when to come back") {
  const auto reply = error_reply({actors::errc::queue_full, "too many \"waiting\"", ""});
  CHECK(reply.status == 429);
  CHECK(reply.headers.at(0) == std::pair<std::string, std::string>("Retry-After", "1"));
  CHECK(
      json(reply.body) ==
      json(
          R"({"error":{"message":"too many \"waiting\"","type":"rate_limit_error","param":null,"code":"queue_full"}})"));
  actors::request_error limited{actors::errc::rate_limited, "no tokens are left", ""};
  limited.retry_after_s = 41;
  const auto later = error_reply(from_engine(limited));
  CHECK(later.status == 429);
  CHECK(later.headers.at(0) == std::pair<std::string, std::string>("Retry-After", "41"));
  const auto param = from_engine(actors::errc::invalid_argument, "`n` must be 1, got 2");
  CHECK(param.param == "n");
}

TEST_CASE("The request table hands out events in order and none after a cancel") {
  scripted_engine engine;
  std::atomic<int> wakes{0};
  engine_requests table(engine, [&] { ++wakes; });
  const auto a = table.start({});
  const auto b = table.start({});
  REQUIRE(engine.wait_running(0));
  std::string text;
  table.cancel(b);
  for (auto& [key, ev] : table.take_events()) {
    CHECK(key == a);
    text += ev.text;
  }
  CHECK(text == "Hello, world");
  CHECK(table.size() == 0);
  CHECK(table.take_events().empty());
  CHECK(wakes >= 1);
}

TEST_CASE("A request rests while any reason to pause holds") {
  scripted_engine engine([](const actors::request&) {
    script s;
    s.start_delay = 1h;
    return s;
  });
  engine_requests table(engine, [] {});
  const auto key = table.start({});
  table.pause(key, engine_requests::no_credit);
  table.pause_all();
  CHECK(engine.paused_count() == 1);
  table.resume_all();
  CHECK(engine.resumed_count() == 0);
  table.resume(key, engine_requests::no_credit);
  CHECK(engine.resumed_count() == 1);
  table.pause_all();
  table.start({}); // started while the socket is slow
  CHECK(engine.paused_count() == 3);
  table.close();
  CHECK(engine.running() == 0);
}

TEST_CASE("Remembered responses are bounded, and private ones private") {
  response_store store(10000, 3);
  const auto with = [](std::size_t bytes) {
    remembered_response r;
    r.messages.push_back(value(std::string(bytes, 'x')));
    return r;
  };
  store.put("a", "t", 0, with(10));
  store.put("b", "t", 5, with(10));
  CHECK(store.find("a", "t", 9) != nullptr);
  CHECK(store.find("a", "u", 0) == nullptr);
  CHECK(store.find("b", "t", 5) != nullptr);
  CHECK(store.find("b", "t", 6) == nullptr);
  store.erase("a", 5);
  CHECK(store.find("a", "t", 0) != nullptr);
  store.put("c", "t", 0, with(10));
  store.put("d", "t", 0, with(10)); // the fourth entry: "a" is removed
  CHECK(store.find("a", "t", 0) == nullptr);
  store.put("e", "t", 0, with(9000)); // too many bytes: older entries are removed
  CHECK(store.held_bytes() <= 10000);
  CHECK(store.find("c", "t", 0) == nullptr);
  store.put("f", "t", 0, with(20000)); // larger than the whole store
  CHECK(store.find("f", "t", 0) == nullptr);
  CHECK(store.find("e", "t", 0) != nullptr);
}

TEST_CASE("A tenant's flood of responses makes the server forget its own alone") {
  const auto with = [](std::size_t bytes) {
    remembered_response r;
    r.messages.push_back(value(std::string(bytes, 'x')));
    return r;
  };
  response_store store(100'000, 50);
  store.put("quiet", "u", 0, with(100));
  store.put("also", "v", 0, with(30'000));
  for (int i = 0; i < 200; ++i)
    store.put("r" + std::to_string(i), "t", 0, with(i % 7 == 0 ? 20'000 : 10));
  CHECK(store.find("quiet", "u", 0) != nullptr);
  CHECK(store.find("also", "v", 0) != nullptr);
  CHECK(store.find("r199", "t", 0) != nullptr);
  CHECK(store.find("r0", "t", 0) == nullptr);
  CHECK(store.held_bytes() <= 100'000);
  // A response that takes more than any other tenant has removes nothing of other tenants.
  store.put("huge", "w", 0, with(90'000));
  CHECK(store.find("huge", "w", 0) == nullptr);
  CHECK(store.find("also", "v", 0) != nullptr);
  // New tenants find room in a full store.
  for (int i = 0; i < 100; ++i) {
    const auto name = std::to_string(i);
    store.put(name, name, 0, with(10));
    CHECK(store.find(name, name, 0) != nullptr);
    CHECK(store.held_bytes() <= 100'000);
  }
}

TEST_CASE("Several tenants are distinguished from several keys of one") {
  CHECK_FALSE(api_keys({}).several_tenants());
  CHECK_FALSE(api_keys({"alpha"}).several_tenants());
  CHECK(api_keys({"alpha", "beta"}).several_tenants());
  config::tenant_options tenant;
  tenant.name = "team";
  tenant.key_sha256 = {digest_of("a"), digest_of("b")};
  CHECK_FALSE(api_keys({}, {tenant}).several_tenants());
  CHECK(api_keys({"alpha"}, {tenant}).several_tenants());
}

TEST_CASE("Bearer keys name their tenant") {
  const api_keys none({});
  CHECK(none.tenant_of("") == std::string());
  const api_keys keys({"alpha", "beta"});
  // A tenant's name is made from the key's hash, whatever other keys there are.
  CHECK(keys.tenant_of(bearer_key("Bearer beta")) == std::string("key-f44e64e75f39"));
  CHECK(api_keys({"beta"}).tenant_of("beta") == keys.tenant_of("beta"));
  CHECK(keys.tenant_of(bearer_key("bearer  alpha")) != keys.tenant_of("beta"));
  for (const auto* bad :
       {"", "Bearer", "Bearer ", "Bearer alph", "Bearer alpha2", "Basic alpha", "alpha"})
    CHECK(!keys.tenant_of(bearer_key(bad)).has_value());
}

TEST_CASE("Tenants are known by the digests of their keys") {
  const std::vector<config::tenant_options> tenants{{"alice", {digest_of("a1"), digest_of("a2")}},
                                                    {"bob", {digest_of("b")}}};
  const api_keys keys({"plain", "b"}, tenants);
  CHECK(keys.tenant_of("a1") == std::string("alice"));
  CHECK(keys.tenant_of("a2") == std::string("alice"));
  CHECK(keys.tenant_of("b") == std::string("bob")); // the tenant's name, though also a plain key
  CHECK(keys.tenant_of("plain")->starts_with("key-"));
  for (const auto& bad : {std::string(), std::string("a"), digest_of("a1")})
    CHECK(!keys.tenant_of(bad).has_value());
  // An empty file of keys, or tenants without keys, let nobody in.
  CHECK(!api_keys({}, {}, true).tenant_of("").has_value());
  CHECK(!api_keys({}, {{"carl"}}).tenant_of("").has_value());
  // The key of a connection that stays open is checked against newer keys.
  const auto holder = keys.holder_of("a1");
  REQUIRE(holder.has_value());
  CHECK(keys.admit(*holder));
  CHECK(api_keys({}).admit(*holder));
  CHECK_FALSE(api_keys({"other"}).admit(*holder));
  CHECK_FALSE(api_keys({}, {{"eve", {digest_of("a1")}}}).admit(*holder)); // now eve's key
  CHECK_FALSE(api_keys({"other"}).admit(*api_keys({}).holder_of("")));
  CHECK(keys.has_key("alice"));
  CHECK_FALSE(keys.has_key("eve"));
}

TEST_CASE("Fresh keys are long, differ, and are known by their digest") {
  CHECK(digest_of("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  std::set<std::string> made;
  for (int i = 0; i < 300; ++i) {
    const auto key = make_key();
    CHECK(key.size() == 4 + 43);
    CHECK(key.starts_with("twk_"));
    CHECK(
        key.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") ==
        std::string::npos);
    CHECK(made.insert(key).second);
    CHECK(api_keys({}, {{"t", {digest_of(key)}}}).tenant_of(key) == std::string("t"));
  }
}

TEST_CASE("A subprotocol may carry a key; another one is answered") {
  const auto offered = read_subprotocols("openai-insecure-api-key.sk-1 , realtime,twill");
  CHECK(offered.key == "sk-1");
  CHECK(offered.named == "realtime");
  CHECK(read_subprotocols("").key.empty());
  CHECK(read_subprotocols("openai-insecure-api-key.a").named.empty());
  CHECK(read_subprotocols(",,").named.empty());
}

TEST_CASE("Ids are long and never repeat") {
  std::set<std::string> ids;
  for (int i = 0; i < 1000; ++i) {
    const auto id = make_id("x_");
    CHECK(id.size() == 26);
    CHECK(id.find_first_not_of("0123456789abcdef", 2) == std::string::npos);
    CHECK(ids.insert(id).second);
  }
  const auto named = make_id("x_", "gpu-1");
  CHECK(named.starts_with("x_gpu-1."));
  CHECK(named.size() == 26 + 6);
  CHECK(make_id("x_", "").size() == 26);
}

TEST_CASE("Only the page that may read a reply is named in it") {
  std::string out;
  append_reply(out, {200, "{}"}, {"id"});
  CHECK(!contains(out, "Access-Control"));
  out.clear();
  append_reply(out, {200, "{}"}, {"id", true, false, false, "https://a.example"});
  CHECK(contains(out, "Access-Control-Allow-Origin: https://a.example\r\n"));
  CHECK(contains(out, "Vary: Origin\r\n"));
}

TEST_CASE("Reply heads and chunks are framed as HTTP/1.1 wants") {
  std::string out;
  append_reply(out, {200, "{}"}, {"id-1"});
  CHECK(out.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(contains(out, "X-Request-Id: id-1\r\n"));
  CHECK(contains(out, "Content-Length: 2\r\n"));
  CHECK(out.ends_with("\r\n\r\n{}"));
  out.clear();
  append_reply(out, {200, "{}"}, {"id", true, false, true, ""});
  CHECK(out.ends_with("\r\n\r\n"));
  out.clear();
  append_chunk(out, "0123456789abcdef");
  append_chunk(out, "");
  CHECK(out == "10\r\n0123456789abcdef\r\n");
  CHECK(percent_decode("/a%2Fb%zz%4") == "/a/b%zz%4");
}

TEST_CASE("Metrics carry vLLM's names under our prefix") {
  scripted_engine engine;
  const auto text = metrics_text({engine, 3});
  for (const auto* name : {"num_requests_running",
                           "num_requests_waiting",
                           "kv_cache_usage_perc",
                           "num_preemptions_total",
                           "prompt_tokens_total",
                           "generation_tokens_total",
                           "prefix_cache_queries_total",
                           "prefix_cache_hits_total",
                           "time_to_first_token_seconds_bucket",
                           "inter_token_latency_seconds_count",
                           "e2e_request_latency_seconds_sum",
                           "request_queue_time_seconds_count",
                           "request_prefill_time_seconds_count",
                           "request_decode_time_seconds_count",
                           "request_prompt_tokens_count",
                           "request_generation_tokens_count",
                           "iteration_tokens_count",
                           "process_resident_memory_bytes",
                           "process_device_memory_bytes",
                           "process_mapped_file_bytes",
                           "device_memory_reserved_bytes",
                           "device_memory_touched_bytes",
                           "device_weights_bytes",
                           "device_kv_bytes",
                           "open_sockets",
                           "kv_blocks_used",
                           "kv_blocks"})
    CHECK(
        contains(text, std::string("\ntwill_") + name + "{engine=\"0\",model_name=\"test-model\""));
  CHECK(contains(text, "twill_kv_cache_usage_perc{engine=\"0\",model_name=\"test-model\"} 0.25\n"));
  CHECK(contains(text, "twill_open_sockets{engine=\"0\",model_name=\"test-model\"} 3\n"));
  CHECK(contains(text, "le=\"0.1\"} 2\n"));
  CHECK(contains(text, "le=\"1\"} 3\n"));
  CHECK(contains(text, "le=\"+Inf\"} 4\n"));
  CHECK(contains(text, "finished_reason=\"abort\"} 0\n"));
  CHECK(contains(text, "block_size=\"16\",num_gpu_blocks=\"100\"} 1\n"));
}

TEST_CASE(
    "Metrics stand under vLLM's names, or those of twill 0.1, as well when that is asked for") {
  scripted_engine engine;
  const auto plain = metrics_text({engine, 3});
  CHECK(!contains(plain, "vllm:"));
  CHECK(!contains(plain, "twill:"));
  const auto vllm = metrics_text({engine, 3, "vllm"});
  CHECK(contains(vllm, "\ntwill_kv_blocks{"));
  const std::string labels = "{engine=\"0\",model_name=\"test-model\"} ";
  for (const char* name : {"kv_cache_usage_perc", "gpu_cache_usage_perc"})
    CHECK(contains(vllm, std::string("\nvllm:") + name + labels + "0.25\n"));
  for (const char* name : {"inter_token_latency_seconds", "time_per_output_token_seconds",
                           "request_max_num_generation_tokens", "iteration_tokens_total"})
    CHECK(contains(vllm, std::string("# TYPE vllm:") + name + " histogram\n"));
  CHECK(contains(vllm, "\nvllm:gpu_prefix_cache_hit_rate" + labels + "0\n"));
  CHECK(contains(vllm,
                 "\nvllm:lora_requests_info{engine=\"0\",model_name=\"test-model\",max_lora=\"0\","
                 "waiting_lora_adapters=\"\",running_lora_adapters=\"\"} 1\n"));
  engine.count = [](actors::engine_stats& to) {
    to.prefix_cache_queries = 8;
    to.prefix_cache_hits = 2;
  };
  CHECK(contains(metrics_text({engine, 3, "vllm"}),
                 "\nvllm:gpu_prefix_cache_hit_rate" + labels + "0.25\n"));
  const auto older = metrics_text({engine, 3, "0.1"});
  CHECK(contains(older, "\ntwill_kv_blocks{"));
  for (const char* name : {"kv_blocks_total", "kv_blocks_used", "iteration_tokens_total",
                           "time_per_output_token_seconds", "inter_token_latency_seconds"})
    CHECK(contains(older, std::string("\n# TYPE twill:") + name + " "));
  CHECK(!contains(older, "twill:kv_blocks{"));
}
