#include "config/sampling.hpp"

#include <limits>
#include <string>

#include "config/options.hpp"
#include "tests/catch.hpp"

using namespace twill::config;

namespace {

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

template <class Change>
std::string error_of(Change change) {
  sampling_params p;
  change(p);
  const auto found = validate(p, limit_options{}, 100);
  return found ? text_of(*found) : "ok";
}

} // namespace

#define ERROR_OF(statement) error_of([](sampling_params& p) { statement; })

TEST_CASE("the default sampling parameters are valid", "[config]") {
  CHECK(ERROR_OF((void)p) == "ok");
}

TEST_CASE("values at the ends of their ranges are valid", "[config]") {
  CHECK(ERROR_OF(p.temperature = 0) == "ok");
  CHECK(ERROR_OF(p.temperature = 100) == "ok");
  CHECK(ERROR_OF(p.top_k = -1) == "ok");
  CHECK(ERROR_OF(p.top_p = 1e-6f) == "ok");
  CHECK(ERROR_OF(p.min_p = 1) == "ok");
  CHECK(ERROR_OF(p.presence_penalty = -2) == "ok");
  CHECK(ERROR_OF(p.max_tokens = 1; p.min_tokens = 1) == "ok");
  CHECK(ERROR_OF(p.min_tokens = 5) == "ok");
  CHECK(ERROR_OF(p.n = 16; p.logprobs = 20) == "ok");
  CHECK(ERROR_OF(p.logprobs = 0) == "ok");
  CHECK(ERROR_OF((p.logit_bias = {{0, -100.f}, {99, 100.f}})) == "ok");
  CHECK(ERROR_OF((p.stop_token_ids = {0, 99})) == "ok");
  CHECK(ERROR_OF(p.stop.assign(16, "x")) == "ok");
}

TEST_CASE("numbers outside their ranges are refused, NaN and infinities included", "[config]") {
  CHECK(ERROR_OF(p.temperature = nan_value) == "`temperature` must be between 0 and 100, got nan");
  CHECK(ERROR_OF(p.temperature = -0.1f) == "`temperature` must be between 0 and 100, got -0.1");
  CHECK(ERROR_OF(p.temperature = infinity) == "`temperature` must be between 0 and 100, got inf");
  CHECK(ERROR_OF(p.top_k = -2) == "`top_k` must be -1 or more, got -2");
  CHECK(ERROR_OF(p.top_p = 0) == "ok");
  CHECK(ERROR_OF(p.top_p = -0.1f) == "`top_p` must be between 0 and 1, got -0.1");
  CHECK(ERROR_OF(p.top_p = nan_value) == "`top_p` must be between 0 and 1, got nan");
  CHECK(ERROR_OF(p.min_p = 1.5f) == "`min_p` must be between 0 and 1, got 1.5");
  CHECK(ERROR_OF(p.repetition_penalty = 0) ==
        "`repetition_penalty` must be above 0 and finite, got 0");
  CHECK(ERROR_OF(p.repetition_penalty = infinity) ==
        "`repetition_penalty` must be above 0 and finite, got inf");
  CHECK(ERROR_OF(p.presence_penalty = 3) == "`presence_penalty` must be between -2 and 2, got 3");
  CHECK(ERROR_OF(p.frequency_penalty = nan_value) ==
        "`frequency_penalty` must be between -2 and 2, got nan");
}

TEST_CASE("lengths and counts keep the limits", "[config]") {
  CHECK(ERROR_OF(p.max_tokens = 0) == "ok");
  CHECK(ERROR_OF(p.max_tokens = -2) == "`max_tokens` must be at least 0, got -2");
  CHECK(ERROR_OF((p.bad_words = {"a", ""})) == "`bad_words` must have no empty entry, got \"\"");
  CHECK(ERROR_OF(p.bad_words.resize(1025, "a")) ==
        "`bad_words` must have at most 1024 entries, got 1025");
  CHECK(ERROR_OF((p.allowed_token_ids = {-1})) ==
        "`allowed_token_ids` must be token ids between 0 and 99, got -1");
  CHECK(ERROR_OF(p.min_tokens = -1) == "`min_tokens` must be at least 0, got -1");
  CHECK(ERROR_OF(p.max_tokens = 4; p.min_tokens = 5) ==
        "`min_tokens` must be at most `max_tokens` (4), got 5");
  CHECK(ERROR_OF(p.n = 0) == "`n` must be at least 1, got 0");
  CHECK(ERROR_OF(p.n = 17) == "`n` must be at most 16, got 17");
  CHECK(ERROR_OF(p.logprobs = -2) == "`logprobs` must be at least 0, got -2");
  CHECK(ERROR_OF(p.logprobs = 21) == "`logprobs` must be at most 20, got 21");
  CHECK(ERROR_OF(p.stop.assign(17, "x")) == "`stop` must have at most 16 entries, got 17");
  CHECK(ERROR_OF(p.stop.push_back("")) == "`stop` must have no empty entry, got \"\"");
  CHECK(ERROR_OF(p.stop.push_back(std::string(4097, 'x'))) ==
        "`stop` must be a list of texts of at most 4096 bytes, got one of 4097");
  CHECK(ERROR_OF(p.stop_token_ids.assign(1025, 1)) ==
        "`stop_token_ids` must have at most 1024 entries, got 1025");
}

TEST_CASE("token ids must be in the vocabulary", "[config]") {
  CHECK(ERROR_OF(p.stop_token_ids.push_back(100)) ==
        "`stop_token_ids` must be token ids between 0 and 99, got 100");
  CHECK(ERROR_OF(p.stop_token_ids.push_back(-1)) ==
        "`stop_token_ids` must be token ids between 0 and 99, got -1");
  CHECK(ERROR_OF(p.logit_bias.push_back({100, 0.f})) ==
        "`logit_bias` must be token ids between 0 and 99, got 100");
  CHECK(ERROR_OF(p.logit_bias.push_back({1, 101.f})) ==
        "`logit_bias` must be between -100 and 100, got 101");
  CHECK(ERROR_OF(p.logit_bias.push_back({1, nan_value})) ==
        "`logit_bias` must be between -100 and 100, got nan");
}
