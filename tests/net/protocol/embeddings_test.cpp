// Embeddings, scores and ranks: how each field is used, what is refused and with which error, what
// the replies contain, and how many requests of one body the engine has at a time.
#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "net/connection/engine_requests.hpp"
#include "net/protocol/embedding_fields.hpp"
#include "net/protocol/ollama/embed.hpp"
#include "net/protocol/openai/embeddings.hpp"
#include "net/protocol/openai/scores.hpp"
#include "net/protocol/vectors.hpp"
#include "tests/catch.hpp"
#include "tests/net/support/codec_support.hpp"
#include "tests/net/support/running_server.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::testing;
using actors::pooling;
using numbers = std::vector<float>;

namespace {

struct embed_fixture : codec_fixture {
  embed_fixture() {
    model.embedding_size = 2;
    model.max_model_len = 500;
  }
  call made(codec parse, const std::string& body) {
    auto made = parse(json(body), context);
    REQUIRE(made.ok());
    return std::move(made).value();
  }
  std::string error(codec parse, const std::string& body) {
    const auto made = parse(json(body), context);
    return made.ok() ? "" : made.code().message;
  }
  /// The reply when the requests end in this order with these vectors.
  std::string reply(codec parse, const std::string& body, const std::vector<numbers>& vectors,
                    const std::vector<std::size_t>& order) {
    auto pooled = made(parse, body);
    REQUIRE(pooled.requests.size() == vectors.size());
    REQUIRE_FALSE(pooled.stream);
    std::string out;
    for (const std::size_t i : order) {
      actors::event ev;
      ev.started = ev.last = true;
      ev.finish = actors::finish_reason::stop;
      ev.embedding = std::make_shared<const numbers>(vectors[i]);
      ev.use.prompt_tokens = static_cast<std::int32_t>(10 + i);
      pooled.encoder->on_event(i, std::move(ev), out);
    }
    pooled.encoder->on_end(out);
    return out;
  }
};

std::string text_of(const actors::request& r) {
  return std::get<actors::text_prompt>(r.prompt).text;
}

constexpr codec ollama_embed = ollama::parse_embed, ollama_embeddings = ollama::parse_embeddings;

} // namespace

TEST_CASE("Each form of the input becomes a request for each text") {
  embed_fixture b;
  auto one = b.made(parse_embeddings, R"({"input":"ab"})").requests;
  REQUIRE(one.size() == 1);
  CHECK(text_of(one[0]) == "ab");
  CHECK(one[0].pooling == pooling::last);
  CHECK(one[0].prompt_field == "input");
  CHECK(one[0].dimensions == 0);
  CHECK(one[0].model == b.model.id);
  auto several = b.made(parse_embeddings, R"({"input":["a","b"]})").requests;
  REQUIRE(several.size() == 2);
  CHECK(text_of(several[1]) == "b");
  CHECK(several[1].prompt_field == "input[1]");
  auto ids = b.made(parse_embeddings, R"({"input":[1,2,3]})").requests;
  REQUIRE(ids.size() == 1);
  CHECK(std::get<actors::token_prompt>(ids[0].prompt) == actors::token_prompt{1, 2, 3});
  CHECK(ids[0].prompt_field == "input");
  CHECK(b.made(parse_embeddings, R"({"input":[[1,2],[3]]})").requests.size() == 2);
  const auto chat =
      b.made(parse_embeddings, R"({"messages":[{"role":"user","content":"hi"}]})").requests;
  REQUIRE(chat.size() == 1);
  const auto& prompt = std::get<actors::chat_prompt>(chat[0].prompt);
  CHECK_FALSE(prompt.add_generation_prompt);
  CHECK(at(prompt.messages, 0, "content") == value("hi"));
}

TEST_CASE("Each field of an embedding reaches the engine") {
  embed_fixture b;
  const auto r = b.made(parse_embeddings, R"({"input":"x","pooling":"mean","dimensions":2,
      "truncate_prompt_tokens":9,"add_special_tokens":false,"priority":-4,"cache_salt":"s",
      "user":"u","model":null,"encoding_format":"float","normalize":true,"stream":false,
      "embed_dtype":"float32","endianness":"little","truncation_side":"left"})")
                     .requests.at(0);
  CHECK(r.pooling == pooling::mean);
  CHECK(r.dimensions == 2);
  CHECK(r.truncate_prompt_tokens == 9);
  CHECK_FALSE(r.truncate_to_first);
  CHECK_FALSE(std::get<actors::text_prompt>(r.prompt).add_special);
  CHECK(r.priority == -4);
  CHECK(r.cache_salt == "s");
  CHECK(b.made(parse_embeddings, R"({"input":"x","truncate_prompt_tokens":-1})")
            .requests.at(0)
            .truncate_prompt_tokens == 500);
}

TEST_CASE("A broken field of an embedding is named with its rule") {
  embed_fixture b;
  const std::pair<const char*, const char*> cases[] = {
      {R"({})", "`input` must"},
      {R"({"input":null})", "`input` must"},
      {R"({"input":[]})", "`input` must be a string, a list of token ids, or a list of either"},
      {R"({"input":{}})", "`input` must be a string, a list of token ids, or a list of either"},
      {R"({"input":""})", "`input` must be a text or token ids, not empty"},
      {R"({"input":["a",""]})", "`input[1]` must be a text or token ids, not empty"},
      {R"({"input":[[1],[]]})", "`input[1]` must be a text or token ids, not empty"},
      {R"({"input":["a",5]})", "`input[1]` must be a string or a list of token ids, got 5"},
      {R"({"input":[1,"a"]})", "`input[1]` must be a token id"},
      {R"({"input":[1,-1]})", "`input[1]` must be a token id"},
      {R"({"input":[true]})", "`input[0]` must be a token id"},
      {R"({"input":[5000]})", "`input[0]` must be a token id below 1000, got 5000"},
      {R"({"input":"x","pooling":"cls"})", "`pooling` must be \"last\" or \"mean\", got \"cls\""},
      {R"({"input":"x","pooling":1})", "`pooling` must be \"last\" or \"mean\", got 1"},
      {R"({"input":"x","dimensions":0})", "`dimensions` must be >= 1, got 0"},
      {R"({"input":"x","dimensions":"2"})", "`dimensions` must be an integer"},
      {R"({"input":"x","encoding_format":"hex"})",
       "`encoding_format` must be \"float\" or \"base64\", got \"hex\""},
      {R"({"input":"x","normalize":1})", "`normalize` must be true or false, got 1"},
      {R"({"input":"x","use_activation":"no"})", "`use_activation` must be true or false"},
      {R"({"input":"x","truncate_prompt_tokens":0})", "`truncate_prompt_tokens` must be >= 1"},
      {R"({"input":"x","truncate_prompt_tokens":-2})", "`truncate_prompt_tokens` must be >= 1"},
      {R"({"input":"x","add_special_tokens":"yes"})", "`add_special_tokens` must be true or false"},
      {R"({"input":"x","priority":"high"})", "`priority` must be an integer"},
      {R"({"input":"x","cache_salt":""})", "`cache_salt` must be a string of 1 to 1024 bytes"},
      {R"({"input":"x","stream":true})", "`stream` must be false or absent"},
      {R"({"input":"x","embed_dtype":"float16"})",
       "`embed_dtype` must be \"float32\" or absent, got \"float16\""},
      {R"({"input":"x","endianness":"big"})", "`endianness` must be"},
      {R"({"input":"x","truncation_side":"right"})", "`truncation_side` must be"},
      {R"({"input":"x","messages":[{"role":"user","content":"hi"}]})",
       "`input` must be absent beside `messages`"},
      {R"({"messages":[]})", "`messages` must"},
  };
  for (const auto& [body, wanted] : cases) {
    CAPTURE(body);
    CHECK(contains(b.error(parse_embeddings, body), wanted));
  }
}

TEST_CASE("The inputs of a body, and the numbers of its reply, are bounded") {
  embed_fixture b;
  const auto body = [](std::size_t n, const char* more = "") {
    std::string all = R"({"input":["a")";
    for (std::size_t i = 1; i < n; ++i)
      all += R"(,"a")";
    return all + "]" + more + "}";
  };
  CHECK(b.made(parse_embeddings, body(2048)).requests.size() == 2048);
  CHECK(contains(b.error(parse_embeddings, body(2049)), "`input` must be at most 2048"));
  b.model.embedding_size = 4096;
  CHECK(contains(b.error(parse_embeddings, body(2048)), "`input` must be at most 630 inputs"));
  CHECK(b.error(parse_embeddings, body(630)) == "");
  CHECK(b.error(parse_embeddings, body(1536, R"(,"encoding_format":"base64")")) == "");
  b.model.embedding_size = 1 << 20;
  CHECK(b.error(parse_embeddings, body(1)) == "");
  b.model.embedding_size = 0; // unknown, since the model's files are closed
  CHECK(contains(b.error(parse_embeddings, body(2048)), "at most 630"));
}

TEST_CASE("Embeddings are written in the order of their inputs, whichever is there first") {
  embed_fixture b;
  for (const auto& order : std::vector<std::vector<std::size_t>>{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}}) {
    CHECK(
        b.reply(parse_embeddings, R"({"input":["a","b","c"]})", {{3, 4}, {0, 0}, {-5, 0}}, order) ==
        R"({"object":"list","data":[)"
        R"({"object":"embedding","index":0,"embedding":[0.6,0.8]},)"
        R"({"object":"embedding","index":1,"embedding":[0,0]},)"
        R"({"object":"embedding","index":2,"embedding":[-1,0]}],)"
        R"("model":"test-model","usage":{"prompt_tokens":33,"total_tokens":33}})");
  }
  CHECK(contains(b.reply(parse_embeddings, R"({"input":"a","normalize":false})", {{3, 4}}, {0}),
                 R"("embedding":[3,4])"));
  // 1.0f is 0x3f800000 and -2.0f is 0xc0000000, the lowest byte first.
  CHECK(contains(b.reply(parse_embeddings,
                         R"({"input":"a","normalize":false,"encoding_format":"base64"})", {{1, -2}},
                         {0}),
                 R"("embedding":"AACAPwAAAMA=")"));
}

TEST_CASE("Base64 and lengths are those of their definitions") {
  const auto base64 = [](const numbers& of) {
    std::string out;
    append_base64(out, of);
    return out;
  };
  CHECK(base64({}).empty());
  CHECK(base64({1}) == "AACAPw==");
  CHECK(base64({1, 1, 1}) == "AACAPwAAgD8AAIA/");
  std::mt19937 draw(3);
  for (int round = 0; round < 200; ++round) {
    numbers a(1 + draw() % 50), c(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      a[i] = static_cast<float>(draw() % 2001) - 1000;
      c[i] = static_cast<float>(draw() % 2001) - 1000;
    }
    const numbers unit = unit_vector(a);
    double length = 0, dot = 0, lengths[2] = {0, 0};
    for (std::size_t i = 0; i < a.size(); ++i) {
      length += double{unit[i]} * unit[i];
      dot += double{a[i]} * c[i];
      lengths[0] += double{a[i]} * a[i];
      lengths[1] += double{c[i]} * c[i];
    }
    if (lengths[0] == 0 || lengths[1] == 0) continue;
    CHECK(std::abs(length - 1) < 1e-5);
    CHECK(std::abs(cosine(a, c) - dot / std::sqrt(lengths[0] * lengths[1])) < 1e-12);
    CHECK(cosine(a, a) <= 1);
  }
  CHECK(cosine(numbers{0, 0}, numbers{1, 2}) == 0);
  const numbers broken = unit_vector(numbers{std::numeric_limits<float>::infinity(), 1});
  CHECK(broken[1] == 1);
}

TEST_CASE("A score is the cosine of two texts, one with each or pair by pair") {
  embed_fixture b;
  const auto scores = [&](const std::string& body, const std::vector<numbers>& vectors) {
    std::vector<std::size_t> order(vectors.size());
    for (std::size_t i = 0; i < order.size(); ++i)
      order[i] = order.size() - 1 - i;
    const auto reply = json(b.reply(parse_score, body, vectors, order));
    CHECK(at(reply, "object") == value("list"));
    CHECK(at(reply, "model") == value("test-model"));
    std::vector<double> all;
    const auto& data = *at(reply, "data").as_list();
    for (std::size_t i = 0; i < data.size(); ++i) {
      CHECK(at(data[i], "index") == value(static_cast<std::int64_t>(i)));
      CHECK(at(data[i], "object") == value("score"));
      all.push_back(*at(data[i], "score").as_number());
    }
    return all;
  };
  CHECK(scores(R"({"text_1":"a","text_2":"b"})", {{1, 0}, {2, 0}}) == std::vector<double>{1});
  CHECK(scores(R"({"text_1":"a","text_2":["b","c"]})", {{1, 0}, {0, 3}, {-4, 0}}) ==
        std::vector<double>{0, -1});
  CHECK(scores(R"({"text_1":["a","b"],"text_2":["c","d"]})", {{1, 0}, {0, 1}, {1, 0}, {0, -1}}) ==
        std::vector<double>{1, -1});
  const std::pair<const char*, const char*> cases[] = {
      {R"({"text_1":"a"})", "`text_2` must"},
      {R"({"text_2":"a"})", "`text_1` must"},
      {R"({"text_1":["a","b"],"text_2":["c"]})", "`text_2` must be as many texts as `text_1`"},
      {R"({"text_1":["a","b"],"text_2":["c","d","e"]})", "`text_2` must be as many"},
      {R"({"text_1":"a","text_2":""})", "`text_2` must be a text or token ids, not empty"},
      {R"({"text_1":"a","text_2":"b","pooling":"x"})", "`pooling` must"},
  };
  for (const auto& [body, wanted] : cases) {
    CAPTURE(body);
    CHECK(contains(b.error(parse_score, body), wanted));
  }
}

TEST_CASE("Documents are ranked by their cosine with the query") {
  embed_fixture b;
  const std::vector<numbers> vectors = {{1, 0}, {0, 1}, {1, 1}, {5, 0}, {0, 2}};
  const auto ranked = [&](const std::string& more) {
    return json(b.reply(parse_rerank,
                        R"({"query":"q","documents":["a",{"text":"b"},"c","d"])" + more + "}",
                        vectors, {4, 0, 2, 1, 3}));
  };
  const auto all = ranked("");
  REQUIRE(at(all, "results").as_list()->size() == 4);
  const std::int64_t order[] = {2, 1, 0, 3}; // equal scores keep the order of the input
  for (int i = 0; i < 4; ++i)
    CHECK(at(all, "results", i, "index") == value(order[i]));
  CHECK(at(all, "results", 0, "relevance_score") == value(1));
  CHECK(at(all, "results", 1, "document", "text") == value("b"));
  CHECK(at(all, "usage", "prompt_tokens") == value(60));
  const auto two = ranked(R"(,"top_n":2,"return_documents":false)");
  REQUIRE(at(two, "results").as_list()->size() == 2);
  CHECK(at(two, "results", 1, "index") == value(1));
  CHECK(at(two, "results", 1).find("document") == nullptr);
  CHECK(at(ranked(R"(,"top_n":99)"), "results").as_list()->size() == 4);
  CHECK(at(ranked(R"(,"top_n":0)"), "results").as_list()->size() == 4);
  const auto cut =
      b.made(parse_rerank, R"({"query":"q","documents":["a"],"max_tokens_per_doc":7})").requests;
  CHECK(cut.at(0).truncate_prompt_tokens == 0);
  CHECK(cut.at(1).truncate_prompt_tokens == 7);
  CHECK(cut.at(1).truncate_to_first);
  const std::pair<const char*, const char*> cases[] = {
      {R"({"documents":["a"]})", "`query` must"},
      {R"({"query":"","documents":["a"]})", "`query` must be a text or token ids, not empty"},
      {R"({"query":["q"],"documents":["a"]})", "`query` must be a string"},
      {R"({"query":"q"})", "`documents` must"},
      {R"({"query":"q","documents":[]})", "`documents` must be a list of 1 to 2048 documents"},
      {R"({"query":"q","documents":"a"})", "`documents` must be a list of 1 to 2048 documents"},
      {R"({"query":"q","documents":["a",{"image":"b"}]})",
       "`documents[1]` must be a string or an object with a string `text`"},
      {R"({"query":"q","documents":[""]})", "`documents[0]` must be a text"},
      {R"({"query":"q","documents":["a"],"top_n":-1})", "`top_n` must be >= 0"},
      {R"({"query":"q","documents":["a"],"return_documents":1})", "`return_documents` must be"},
      {R"({"query":"q","documents":["a"],"max_chunks_per_doc":1})", "`max_chunks_per_doc` must"},
      {R"({"query":"q","documents":["a"],"rank_fields":["x"]})", "`rank_fields` must be absent"},
      {R"({"query":"q","documents":["a"],"max_tokens_per_doc":0})", "`max_tokens_per_doc` must"},
  };
  for (const auto& [body, wanted] : cases) {
    CAPTURE(body);
    CHECK(contains(b.error(parse_rerank, body), wanted));
  }
}

TEST_CASE("Ollama's two forms give its replies, and keep the first tokens of long texts") {
  embed_fixture b;
  const auto both = json(b.reply(ollama_embed, R"({"model":"test-model","input":["a","b"],
      "options":{"num_ctx":4},"keep_alive":"5m"})",
                                 {{3, 4}, {0, 2}}, {1, 0}));
  CHECK(at(both, "model") == value("test-model"));
  CHECK(at(both, "embeddings", 0, 0).as_number() == Approx(0.6));
  CHECK(at(both, "embeddings", 1, 1) == value(1));
  CHECK(at(both, "prompt_eval_count") == value(21));
  CHECK(*at(both, "total_duration").as_int() >= 0);
  CHECK(at(both, "load_duration") == value(0));
  CHECK(b.reply(ollama_embeddings, R"({"prompt":"a"})", {{3, 4}}, {0}) == R"({"embedding":[3,4]})");
  auto r = b.made(ollama_embed, R"({"input":"a"})").requests.at(0);
  CHECK(r.truncate_prompt_tokens == 500);
  CHECK(r.truncate_to_first);
  r = b.made(ollama_embed, R"({"input":"a","truncate":false,"dimensions":2})").requests.at(0);
  CHECK(r.truncate_prompt_tokens == 0);
  CHECK(r.dimensions == 2);
  for (const auto* body : {R"({})", R"({"input":[]})", R"({"input":7})", R"({"input":{"a":1}})"})
    CHECK(contains(b.error(ollama_embed, body), "`input` must"));
  CHECK(contains(b.error(ollama_embed, R"({"input":"a","truncate":"no"})"), "`truncate` must"));
  CHECK(contains(b.error(ollama_embeddings, R"({"prompt":["a"]})"), "`prompt` must be a string"));
  CHECK(contains(b.error(ollama_embeddings, R"({"input":"a"})"), "`prompt` must"));
}

namespace {

const std::pair<codec, const char*> whole_bodies[] = {
    {parse_embeddings,
     R"({"model":"test-model","input":["a",[1,2]],"pooling":"mean","dimensions":2,"normalize":true,
         "encoding_format":"float","truncate_prompt_tokens":4,"priority":1,"cache_salt":"s"})"},
    {parse_embeddings, R"({"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}]})"},
    {parse_score, R"({"text_1":["a","b"],"text_2":["c","d"],"add_special_tokens":true})"},
    {parse_rerank, R"({"query":"q","documents":["a",{"text":"b"}],"top_n":1,
         "return_documents":true,"max_tokens_per_doc":3})"},
    {ollama_embed, R"({"input":["a","b"],"truncate":true,"options":{},"keep_alive":1})"},
    {ollama_embeddings, R"({"prompt":"a"})"},
};

value odd_value(std::mt19937& draw) {
  switch (draw() % 12) {
  case 0:
    return {};
  case 1:
    return value(draw() % 2 == 0);
  case 2:
    return value(static_cast<std::int64_t>(draw() % 5) - 2);
  case 3:
    return value(std::int64_t{1} << 40);
  case 4:
    return value(1e300);
  case 5:
    return value("");
  case 6:
    return value(std::string("\xff\x00\"", 3));
  case 7:
    return value(value_list{});
  case 8:
    return value(value_object{});
  case 9:
    return value(value_list{odd_value(draw), odd_value(draw)});
  case 10:
    return value(value_object{{"text", odd_value(draw)}, {"text", odd_value(draw)}});
  default:
    return value::whole_number("-99999999999999999999999999");
  }
}

/// The value with some part of it replaced.
value changed(const value& of, std::mt19937& draw) {
  if (draw() % 4 == 0) return odd_value(draw);
  if (const auto* list = of.as_list(); list != nullptr && !list->empty()) {
    value_list items = *list;
    auto& one = items[draw() % items.size()];
    one = changed(one, draw);
    return value(std::move(items));
  }
  if (const auto* object = of.as_object(); object != nullptr && !object->empty()) {
    value_object members = *object;
    auto& [name, one] = members[draw() % members.size()];
    one = changed(one, draw);
    return value(std::move(members));
  }
  return odd_value(draw);
}

} // namespace

TEST_CASE("Whatever a body holds, it is refused in words or becomes requests that have a reply") {
  embed_fixture b;
  std::mt19937 draw(11);
  int accepted = 0, refused = 0;
  for (int round = 0; round < 4000; ++round) {
    const auto& [parse, text] =
        whole_bodies[static_cast<std::size_t>(round) % std::size(whole_bodies)];
    value body = json(text);
    for (auto n = draw() % 3; n-- > 0;)
      body = changed(body, draw);
    auto made = parse(body, b.context);
    if (!made.ok()) {
      ++refused;
      CHECK_FALSE(made.code().message.empty());
      continue;
    }
    ++accepted;
    auto& pooled = made.value();
    REQUIRE_FALSE(pooled.requests.empty());
    std::string out;
    for (std::size_t i = 0; i < pooled.requests.size(); ++i) {
      CHECK(pooled.requests[i].pooling != pooling::none);
      actors::event ev;
      ev.embedding = std::make_shared<const numbers>(numbers{1, 2});
      pooled.encoder->on_event(i, std::move(ev), out);
    }
    pooled.encoder->on_end(out);
    CHECK(parse_json(out).ok());
  }
  CHECK(accepted > 500);
  CHECK(refused > 500);
}

TEST_CASE("So many requests for hidden states of one socket are in the engine at once, in order") {
  scripted_engine engine([](const actors::request&) {
    script s;
    s.start_delay = 1h;
    return s;
  });
  constexpr auto most = engine_requests::most_pooled;
  engine_requests table(engine, [] {});
  actors::request pooled;
  pooled.pooling = pooling::last;
  std::vector<engine_requests::key> keys;
  for (std::size_t i = 0; i < most + 6; ++i) {
    pooled.prompt_field = std::to_string(i);
    keys.push_back(table.start(pooled));
    CHECK(keys.back() == keys.front() + i);
  }
  table.start({}); // a request that generates does not wait
  CHECK(engine.submitted().size() == most + 1);
  CHECK(table.size() == most + 7);
  table.cancel(keys[most + 1]); // a request that waits
  CHECK(engine.running() == most + 1);
  CHECK(engine.submitted().size() == most + 1);
  table.pause_all();
  const int paused = engine.paused_count();
  CHECK(paused == static_cast<int>(most + 1));
  table.cancel(keys[0]); // the next request takes its place, and is paused too
  REQUIRE(engine.submitted().size() == most + 2);
  CHECK(engine.submitted().back().prompt_field == std::to_string(most));
  CHECK(engine.paused_count() == paused + 1);
  table.cancel(keys[1]);
  CHECK(engine.submitted().back().prompt_field == std::to_string(most + 2));
  table.close();
  CHECK(engine.running() == 0);
  CHECK(table.size() == 0);
}

TEST_CASE("A body of thousands of inputs is answered whole, and an error of one ends it") {
  running_server s;
  client c(s.port());
  std::string body = R"({"input":["0")";
  for (int i = 1; i < 2048; ++i)
    body += ",\"" + std::to_string(i) + "\"";
  body += "]}";
  const auto reply = c.post("/v1/embeddings", body);
  REQUIRE(reply.status == 200);
  const auto all = json(reply.body);
  REQUIRE(at(all, "data").as_list()->size() == 2048);
  CHECK(at(all, "data", 2047, "index") == value(2047));
  CHECK(at(all, "data", 5, "embedding", 0).as_number() == Approx(0.6));
  const auto submitted = s.engine.submitted();
  REQUIRE(submitted.size() == 2048);
  for (std::size_t i = 0; i < submitted.size(); ++i)
    CHECK(text_of(submitted[i]) == std::to_string(i));

  s.engine.set_script([](const actors::request& asked) {
    script play;
    if (text_of(asked) == "70")
      play.refusal = actors::request_error{actors::errc::context_too_long,
                                           "`input[70]` must be "
                                           "shorter",
                                           "input[70]"};
    return play;
  });
  const auto refused = c.post("/v1/embeddings", body);
  CHECK(refused.status == 400);
  CHECK(at(json(refused.body), "error", "param") == value("input[70]"));
  CHECK(s.engine.wait_running(0));
  CHECK(c.post("/v1/embeddings", R"({"input":"x"})").status == 200);
}

TEST_CASE("Every route of embeddings, scores and ranks is served") {
  running_server s;
  client c(s.port());
  const std::pair<const char*, const char*> routes[] = {
      {"/v1/embeddings", R"({"input":"x"})"},
      {"/v1/score", R"({"text_1":"a","text_2":"b"})"},
      {"/score", R"({"text_1":"a","text_2":"b"})"},
      {"/v1/rerank", R"({"query":"a","documents":["b"]})"},
      {"/v2/rerank", R"({"query":"a","documents":["b"]})"},
      {"/rerank", R"({"query":"a","documents":["b"]})"},
      {"/api/embed", R"({"input":"x"})"},
      {"/api/embeddings", R"({"prompt":"x"})"},
  };
  for (const auto& [path, body] : routes) {
    CAPTURE(path);
    const auto reply = c.post(path, body);
    CHECK(reply.status == 200);
    CHECK(parse_json(reply.body).ok());
    CHECK(c.post(path, "{}").status == 400);
    CHECK(c.get(path).status == 405);
  }
}
