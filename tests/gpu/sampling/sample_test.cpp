#include "tests/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "gpu/detail/op_backends.hpp"
#include "gpu/detail/philox.hpp"
#include "gpu/detail/sampling_backend.hpp"
#include "gpu/sampling/sample.hpp"
#include "tests/gpu/implementations.hpp"
#include "tests/gpu/ragged_case.hpp"
#include "tests/gpu/tested_device.hpp"

using namespace twill;
using gpu::dtype;
using gpu::sample_row;
using test::device_array;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

/// The parameters of a row, with token counts and biases in host memory.
struct request {
  sample_row row;
  std::vector<gpu::token_count> counts;
  std::vector<gpu::token_bias> biases;
  std::vector<std::uint32_t> mask; ///< empty: none
};

struct drawn {
  std::vector<std::int32_t> tokens;
  std::vector<float> logprobs;
  std::vector<std::int32_t> top_ids;
  std::vector<float> top_logprobs;
};

/// Samples row i with requests[i]. With `received`, `args` lists only the stages that rows need.
drawn sample(gpu::device& dev, const std::vector<float>& logits,
             const std::vector<request>& requests, std::int32_t max_top = 0, bool portable = false,
             bool received = false) {
  const std::size_t n = requests.size();
  std::vector<std::unique_ptr<device_array<gpu::token_count>>> counts;
  std::vector<std::unique_ptr<device_array<gpu::token_bias>>> biases;
  std::vector<std::unique_ptr<device_array<std::uint32_t>>> masks;
  std::vector<sample_row> rows;
  gpu::sample_args args;
  for (const request& r : requests) {
    rows.push_back(r.row);
    if (!r.counts.empty()) {
      counts.push_back(std::make_unique<device_array<gpu::token_count>>(dev, r.counts));
      rows.back().counts = counts.back()->data();
      rows.back().n_counts = static_cast<std::int32_t>(r.counts.size());
    }
    if (!r.biases.empty()) {
      biases.push_back(std::make_unique<device_array<gpu::token_bias>>(dev, r.biases));
      rows.back().biases = biases.back()->data();
      rows.back().n_biases = static_cast<std::int32_t>(r.biases.size());
    }
    if (!r.mask.empty()) {
      auto mask = r.mask;
      mask.resize((logits.size() / n + 31) / 32, 0);
      masks.push_back(std::make_unique<device_array<std::uint32_t>>(dev, mask));
      rows.back().mask = masks.back()->data();
    }
    args.any_logprobs = args.any_logprobs || r.row.n_top >= 0;
  }
  if (received) {
    args.any_draw = args.any_top_k = args.any_top_p = false;
    for (const sample_row& r : rows)
      gpu::add_needs(r, args);
  }
  device_array<float> x(dev, logits);
  device_array<sample_row> params(dev, rows);
  device_array<std::int32_t> tokens(dev, std::vector<std::int32_t>(n, -9));
  device_array<float> logprobs(dev, std::vector<float>(n));
  const std::size_t tops = n * static_cast<std::size_t>(max_top);
  device_array<std::int32_t> top_ids(dev, std::vector<std::int32_t>(tops));
  device_array<float> top_logprobs(dev, std::vector<float>(tops));
  const auto rows_n = static_cast<std::int64_t>(n);
  args.logits = gpu::view_2d(x.data(), dtype::f32, rows_n,
                             n == 0 ? 1 : static_cast<std::int64_t>(logits.size() / n));
  args.rows = params.data();
  args.max_top = max_top;
  args.tokens = tokens.data();
  args.logprobs = logprobs.data();
  args.top_ids = top_ids.data();
  args.top_logprobs = top_logprobs.data();
  if (portable) {
    if (n > 0) dev.ops().portable->get<gpu::detail::sampling_backend>().sample.run(dev, args);
    dev.fence();
  } else {
    gpu::sample(dev, args);
  }
  return {tokens.get(), logprobs.get(), top_ids.get(), top_logprobs.get()};
}

bool excludes(const std::vector<std::uint32_t>& mask, std::size_t id) {
  return !mask.empty() && (mask[id / 32] >> (id % 32) & 1) == 0;
}

/// The exact distribution that a request draws from, by sorting, in double.
std::vector<double> distribution(std::vector<float> logits, const request& r) {
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (excludes(r.mask, i)) logits[i] = -inf;
  for (const auto& b : r.biases)
    logits[static_cast<std::size_t>(b.id)] += b.bias;
  for (const auto& c : r.counts) {
    float& x = logits[static_cast<std::size_t>(c.id)];
    x = x > 0 ? x / r.row.repetition_penalty : x * r.row.repetition_penalty;
    if (c.in_output > 0)
      x -= r.row.presence_penalty + r.row.frequency_penalty * static_cast<float>(c.in_output);
  }
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (logits[i] > -inf) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  std::vector<double> p(logits.size(), 0.0);
  if (r.row.temperature == 0) {
    p[order[0]] = 1;
    return p;
  }
  std::vector<double> weight;
  for (const std::size_t i : order)
    weight.push_back(
        std::exp((double{logits[i]} - double{logits[order[0]]}) / double{r.row.temperature}));
  std::size_t keep = 0;
  while (keep < order.size() && weight[keep] >= double{r.row.min_p})
    ++keep;
  if (r.row.top_k > 0) keep = std::min(keep, static_cast<std::size_t>(r.row.top_k));
  const double mass =
      std::accumulate(weight.begin(), weight.begin() + static_cast<long>(keep), 0.0);
  std::size_t nucleus = 0;
  double sum = 0;
  while (nucleus < keep && (nucleus == 0 || sum < double{r.row.top_p} * mass - 1e-9 * mass))
    sum += weight[nucleus++];
  for (std::size_t i = 0; i < nucleus; ++i)
    p[order[i]] = weight[i] / sum;
  return p;
}

/// Draws `n` times with counters 0..n-1 and compares with the distribution by chi-square.
void check_distribution(gpu::device& dev, const std::vector<float>& logits, const request& r,
                        std::size_t n, bool portable) {
  const std::vector<double> p = distribution(logits, r);
  std::vector<request> requests(n, r);
  std::vector<float> rows;
  for (std::size_t i = 0; i < n; ++i) {
    requests[i].row.counter = i;
    rows.insert(rows.end(), logits.begin(), logits.end());
  }
  std::vector<double> seen(logits.size(), 0.0);
  for (const std::int32_t id : sample(dev, rows, requests, 0, portable).tokens)
    seen[static_cast<std::size_t>(id)] += 1;
  double chi2 = 0, rare_seen = 0, rare_expected = 0;
  int bins = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (p[i] == 0) {
      CAPTURE(i);
      REQUIRE(seen[i] == 0);
      continue;
    }
    const double expected = p[i] * static_cast<double>(n);
    if (expected < 5) {
      rare_seen += seen[i];
      rare_expected += expected;
      continue;
    }
    chi2 += (seen[i] - expected) * (seen[i] - expected) / expected;
    ++bins;
  }
  if (rare_expected > 1) {
    chi2 += (rare_seen - rare_expected) * (rare_seen - rare_expected) / rare_expected;
    ++bins;
  }
  CAPTURE(chi2, bins);
  CHECK(chi2 < bins + 4 * std::sqrt(2.0 * bins) + 4);
}

std::vector<request> combinations() {
  std::vector<request> all(15);
  all[1].row.temperature = 0.5f;
  all[2].row.top_k = 7;
  all[3].row.top_p = 0.8f;
  all[4].row.min_p = 0.2f;
  all[5].row.temperature = 1.7f;
  all[5].row.top_k = 20;
  all[5].row.top_p = 0.6f;
  all[5].row.min_p = 0.01f;
  all[6].biases = {{3, 4.0f}, {0, -inf}, {11, -inf}, {3, 0.5f}};
  all[7].row.repetition_penalty = 1.8f;
  all[7].counts = {{1, 2, 0}, {2, 0, 3}, {30, 1, 1}, {5, 0, 1}};
  all[8].row.presence_penalty = 1.1f;
  all[8].row.frequency_penalty = -0.4f;
  all[8].counts = {{1, 2, 0}, {2, 0, 3}, {30, 1, 1}, {5, 4, 1}};
  all[9] = all[8];
  all[9].row.repetition_penalty = 0.7f;
  all[9].row.top_p = 0.9f;
  all[9].biases = {{7, 1.0f}, {1, -inf}};
  all[10].row.temperature = 0;
  all[10].biases = {{7, -100.0f}};
  all[11].row.temperature = 100;
  all[12].mask = {0x0ff00ff0, 0x12};
  all[13] = all[9];
  all[13].mask = {0xffffffff, 0};
  all[14].mask = {0x80000000, 0x100};
  all[14].row.top_k = 3;
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i].row.seed = 0x123456789abcdefULL * (i + 1);
  return all;
}

} // namespace

TEST_CASE("draws follow the exact distribution for combinations of parameters") {
  auto dev = test::open_tested({.threads = 2});
  auto logits = test::random_floats(41, 9, 2.0f);
  logits[13] = not_a_number;
  logits[14] = -inf;
  const auto requests = combinations();
  for (const bool portable : {false, true}) {
    // Fewer draws where a draw is slow: on a GPU it costs allocations and copies, and the portable
    // implementation on the host computes a whole histogram for it.
    const std::size_t draws = dev->memory_is_host() && !portable ? 8000 : 1000;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      CAPTURE(portable, i);
      check_distribution(*dev, logits, requests[i], draws, portable);
    }
  }
}

TEST_CASE("draws of the portable implementation follow the exact distribution everywhere") {
  auto dev = test::open_implementation(GENERATE(from_range(test::portable_implementations())));
  const auto logits = test::random_floats(41, 9, 2.0f);
  const auto requests = combinations();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    CAPTURE(i);
    check_distribution(*dev, logits, requests[i], 300, false);
  }
}

TEST_CASE("draws follow the exact distribution over a vocabulary of real size") {
  auto dev = test::open_tested({.threads = 2});
  const auto logits = test::random_floats(49157, 10, 3.0f);
  for (std::size_t i = 0; i < 3; ++i) {
    request r;
    r.row.seed = i;
    r.row.top_k = i == 0 ? 50 : 0;
    r.row.top_p = i == 1 ? 0.3f : 1.0f;
    r.row.min_p = i == 2 ? 0.05f : 0.0f;
    CAPTURE(i);
    check_distribution(*dev, logits, r, 400, false);
  }
}

TEST_CASE("a row's draw is the same alone and in any batch") {
  auto dev = test::open_implementation(GENERATE(from_range(test::implementations())));
  const std::size_t vocab = 3001;
  const auto requests = combinations();
  const auto logits = test::random_floats(requests.size() * vocab, 11, 2.0f);
  const auto together = sample(*dev, logits, requests).tokens;
  CHECK(sample(*dev, logits, requests).tokens == together);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto at = logits.begin() + static_cast<long>(i * vocab);
    CHECK(sample(*dev, {at, at + static_cast<long>(vocab)}, {requests[i]}).tokens[0] ==
          together[i]);
  }
  CHECK(sample(*dev, {}, {}).tokens.empty());
}

TEST_CASE("every implementation draws and reports what the host does, for any parts of a row") {
  auto dev = test::open_implementation(GENERATE(from_range(test::portable_implementations())));
  auto host = test::open_implementation(test::host_implementation);
  for (const std::size_t vocab : {33, 4095, 4096, 4097, 8192, 21001}) {
    auto requests = combinations();
    // Requests with both top_k and top_p, where either may be stricter, and ties at the cut.
    for (const auto& [k, p] : {std::pair{3, 0.9f}, {400, 0.5f}, {1, 0.5f}, {20000, 0.99f}}) {
      requests.emplace_back();
      requests.back().row.top_k = k;
      requests.back().row.top_p = p;
      requests.back().row.min_p = k == 400 ? 0.001f : 0.0f;
    }
    auto logits = test::random_floats(requests.size() * vocab, 15, 2.5f);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      requests[i].row.counter = 100 + i;
      requests[i].row.n_top = static_cast<std::int32_t>(i % 4) - 1;
      if (!requests[i].mask.empty()) requests[i].mask.resize((vocab + 31) / 32, 0x5a5a0ff0U + i);
      // A grid of values, so that many logits are equal.
      for (std::size_t j = i * vocab; j < (i + 1) * vocab && i % 2 == 1; ++j)
        logits[j] = std::round(logits[j] * 4) / 4;
    }
    for (std::size_t i = 0; i < requests.size(); ++i) {
      logits[i * vocab + 3] = not_a_number;
      logits[i * vocab + vocab / 2] = not_a_number;
      logits[(i + 1) * vocab - 1] = -inf;
    }
    // Row 1 is all -inf, row 2 has +inf in its last part, and row 3 allows only one id.
    const auto row_of = [&](std::size_t i) {
      return logits.begin() + static_cast<long>(i * vocab);
    };
    std::fill(row_of(1), row_of(2), -inf);
    logits[3 * vocab - 2] = std::numeric_limits<float>::infinity();
    requests[3].mask.assign((vocab + 31) / 32, 0);
    requests[3].mask[(vocab - 2) / 32] = 1U << ((vocab - 2) % 32);
    const drawn expected = sample(*host, logits, requests, 2);
    for (const bool received : {false, true}) {
      CAPTURE(vocab, received);
      const drawn actual = sample(*dev, logits, requests, 2, false, received);
      CHECK(actual.tokens == expected.tokens);
      CHECK(actual.top_ids == expected.top_ids);
      const auto equal = [](float a, float b) {
        return a == b || std::abs(a - b) < 2e-6f || (std::isnan(a) && std::isnan(b));
      };
      int apart = 0;
      for (std::size_t i = 0; i < requests.size(); ++i) {
        if (requests[i].row.n_top >= 0) apart += !equal(actual.logprobs[i], expected.logprobs[i]);
        for (std::int32_t k = 0; k < std::min(requests[i].row.n_top, 2); ++k) {
          const std::size_t at = i * 2 + static_cast<std::size_t>(k);
          apart += !equal(actual.top_logprobs.at(at), expected.top_logprobs.at(at));
        }
      }
      CHECK(apart == 0);
    }
  }
}

TEST_CASE("what no row asks for need not be launched, whatever the rows of a batch ask for") {
  auto dev = test::open_implementation(GENERATE(from_range(test::implementations())));
  const std::size_t vocab = 5000;
  const auto logits = test::random_floats(3 * vocab, 16, 2.0f);
  for (const request& r : combinations()) {
    std::vector<request> rows(3, r);
    for (const std::int32_t tops : {-1, 1}) {
      rows[2].row.n_top = tops;
      const drawn all = sample(*dev, logits, rows, 1);
      const drawn received = sample(*dev, logits, rows, 1, false, true);
      CHECK(received.tokens == all.tokens);
      CHECK(received.top_ids == all.top_ids);
      CHECK(received.logprobs == all.logprobs);
    }
  }
}

TEST_CASE("more rows than are drawn at once have the tokens of each alone") {
  auto dev = test::open_implementation(GENERATE(from_range(test::implementations())));
  const std::size_t vocab = 100, rows = 300;
  std::vector<request> requests(rows);
  for (std::size_t i = 0; i < rows; ++i) {
    requests[i].row.counter = i;
    requests[i].row.temperature = i % 5 == 0 ? 0.0f : 1.0f;
    requests[i].row.top_p = 0.9f;
    requests[i].row.n_top = i % 3 == 0 ? 1 : -1;
  }
  const auto logits = test::random_floats(rows * vocab, 17, 2.0f);
  const drawn together = sample(*dev, logits, requests, 1);
  for (const std::size_t i : {0U, 127U, 128U, 129U, 255U, 256U, 299U}) {
    const auto at = logits.begin() + static_cast<long>(i * vocab);
    const drawn alone = sample(*dev, {at, at + static_cast<long>(vocab)}, {requests[i]}, 1);
    CHECK(alone.tokens[0] == together.tokens[i]);
    if (i % 3 == 0) CHECK(alone.logprobs[0] == together.logprobs[i]);
    if (i % 3 == 0) CHECK(alone.top_ids[0] == together.top_ids[i]);
  }
}

TEST_CASE("sampling's scratch is what it says, and bounded in rows") {
  auto dev = test::open_implementation(GENERATE(from_range(test::implementations())));
  const auto bytes = [&](std::int64_t rows, bool logprobs, std::int32_t tops) {
    return gpu::sampling_scratch_bytes(*dev, rows, 152064, logprobs, tops);
  };
  const std::int64_t copy = 152064 * 4;
  CHECK(bytes(1, true, 0) >= copy);
  CHECK(bytes(128, true, 5) >= dev->info().threads * copy);
  CHECK(bytes(128, false, 0) < 16 << 20);
  CHECK(bytes(100000, true, 20) < 128 * copy * 5 / 4 + 100000 * 38 * 16);
}

TEST_CASE("asking for log-probabilities does not change the draw") {
  auto dev = test::open_implementation(GENERATE(from_range(test::implementations())));
  const std::size_t vocab = 501;
  auto requests = combinations();
  const auto logits = test::random_floats(requests.size() * vocab, 12, 2.0f);
  const auto without = sample(*dev, logits, requests).tokens;
  for (request& r : requests)
    r.row.n_top = 2;
  CHECK(sample(*dev, logits, requests, 2).tokens == without);
}

TEST_CASE("ties at a top_k or top_p boundary go to the lowest ids") {
  auto dev = test::open_implementation(GENERATE(from_range(test::implementations())));
  for (const bool portable : {false, true}) {
    std::vector<bool> seen_k(30), seen_p(30), seen_mixed(30);
    std::vector<float> flat(30, 1.5f), mixed(30, 1.0f), logits;
    mixed[20] = mixed[25] = 2.0f;
    std::vector<request> requests;
    for (std::uint64_t c = 0; c < 400; ++c) {
      request k, p, m;
      k.row.counter = p.row.counter = m.row.counter = c;
      k.row.top_k = 3;
      p.row.top_p = 0.35f; // keeps 11 of 30 equal probabilities
      m.row.top_k = 4;
      m.row.top_p = 0.9f; // both 2.0f, then ids 0 and 1; 0.9 needs all four
      for (const request& r : {k, p, m})
        requests.push_back(r);
      for (const std::vector<float>* row : {&flat, &flat, &mixed})
        logits.insert(logits.end(), row->begin(), row->end());
    }
    const auto ids = sample(*dev, logits, requests, 0, portable).tokens;
    for (std::size_t i = 0; i < ids.size(); i += 3) {
      seen_k[static_cast<std::size_t>(ids[i])] = true;
      seen_p[static_cast<std::size_t>(ids[i + 1])] = true;
      seen_mixed[static_cast<std::size_t>(ids[i + 2])] = true;
    }
    for (std::size_t i = 0; i < 30; ++i) {
      CAPTURE(portable, i);
      CHECK(seen_k[i] == (i < 3));
      CHECK(seen_p[i] == (i < 11));
      CHECK(seen_mixed[i] == (i < 2 || i == 20 || i == 25));
    }
  }
}

TEST_CASE("draws and ties are found wherever they lie in a long row") {
  auto dev = test::open_implementation(GENERATE(from_range(test::implementations())));
  constexpr std::size_t vocab = 40000;
  // Ids on both sides of the boundaries between the parts that a team adds up.
  const std::vector<std::int32_t> alive{0, 31, 32, 1023, 1024, 16383, 16384, 39999};
  std::vector<float> few(vocab, -inf), flat(vocab, 0.5f), logits;
  for (const std::int32_t id : alive)
    few[static_cast<std::size_t>(id)] = 1;
  std::vector<request> requests;
  for (std::uint64_t c = 0; c < 80; ++c) {
    request any, most;
    any.row.counter = most.row.counter = c;
    most.row.top_k = 33000;
    for (const request& r : {any, most})
      requests.push_back(r);
    logits.insert(logits.end(), few.begin(), few.end());
    logits.insert(logits.end(), flat.begin(), flat.end());
  }
  const auto ids = sample(*dev, logits, requests).tokens;
  std::vector<std::int32_t> seen;
  std::int32_t last = 0;
  for (std::size_t i = 0; i < ids.size(); i += 2) {
    seen.push_back(ids[i]);
    last = std::max(last, ids[i + 1]);
  }
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  CHECK(seen == alive);
  CHECK(last < 33000);
  CHECK(last > 30000);
}

TEST_CASE("argmax takes the lowest id of the largest and never a NaN") {
  auto dev = test::open_implementation(GENERATE(from_range(test::implementations())));
  for (const std::int64_t vocab : {1, 2, 7, 8, 9, 15, 16, 17, 33, 49152}) {
    const std::int64_t n = 5, stride = vocab + 3;
    auto x =
        test::random_floats(static_cast<std::size_t>(n * stride), static_cast<unsigned>(vocab));
    for (std::int64_t i = 0; i < vocab; ++i) {
      x[static_cast<std::size_t>(1 * stride + i)] = -inf;
      x[static_cast<std::size_t>(2 * stride + i)] = i % 3 == 0 ? not_a_number : -2.0f;
      x[static_cast<std::size_t>(3 * stride + i)] = i == vocab - 1 ? 0.0f : -0.0f;
    }
    x[static_cast<std::size_t>(4 * stride + vocab / 2)] = 50;
    x[static_cast<std::size_t>(4 * stride + vocab - 1)] = 50;
    device_array<float> logits(*dev, x);
    device_array<std::int32_t> tokens(*dev, std::vector<std::int32_t>(n, -9));
    const auto view = gpu::view_2d(logits.data(), dtype::f32, n, vocab, stride);
    for (const bool portable : {false, true}) {
      CAPTURE(vocab, portable);
      if (portable)
        dev->ops().portable->get<gpu::detail::sampling_backend>().argmax.run(*dev, view,
                                                                             tokens.data());
      else
        gpu::argmax(*dev, view, tokens.data());
      const auto row = x.begin();
      const std::vector<std::int32_t> expected{
          static_cast<std::int32_t>(std::max_element(row, row + vocab) - row), 0, vocab > 1 ? 1 : 0,
          0, static_cast<std::int32_t>(vocab / 2)};
      CHECK(tokens.get() == expected);
    }
  }
}

TEST_CASE("when everything is banned the raw argmax is taken") {
  auto dev = test::open_implementation(GENERATE(from_range(test::implementations())));
  for (const float temperature : {0.0f, 1.0f}) {
    request r;
    r.row.temperature = temperature;
    for (std::int32_t i = 0; i < 6; ++i)
      r.biases.push_back({i, -inf});
    CHECK(sample(*dev, {1, 3, not_a_number, 7, 2, 7}, {r}).tokens[0] == 3);
    CHECK(
        sample(*dev, {-inf, not_a_number, -inf, -inf, not_a_number, not_a_number}, {r}).tokens[0] ==
        0);
  }
  request infinite;
  CHECK(sample(*dev, {1, 3, inf, 7, inf, 7}, {infinite}).tokens[0] == 2);
}

TEST_CASE(
    "a mask outranks biases and bans, and the lowest id that it lets through is the last resort") {
  auto dev = test::open_implementation(GENERATE(from_range(test::implementations())));
  for (const bool portable : {false, true})
    for (const float temperature : {0.0f, 1.0f}) {
      CAPTURE(portable, temperature);
      request r;
      r.row.temperature = temperature;
      r.mask = {0b110100};
      r.biases = {{0, 100.0f}, {2, -inf}, {4, -inf}, {5, -inf}};
      CHECK(sample(*dev, {9, 9, 1, 9, 3, 2}, {r}, 0, portable).tokens[0] == 4);
      r.biases.clear();
      const float nan = not_a_number;
      CHECK(sample(*dev, {9, 9, nan, 9, -inf, nan}, {r}, 0, portable).tokens[0] == 2);
    }
}

TEST_CASE("log-probabilities are of the logits before the mask") {
  auto dev = test::open_implementation(GENERATE(from_range(test::implementations())));
  for (const bool portable : {false, true}) {
    request r;
    r.row.temperature = 0;
    r.mask = {0b1000};
    const std::vector<float> logits{5, 1, 2, 0};
    const float without = sample(*dev, logits, {request{}}, 0, portable).logprobs[0];
    r.row.n_top = 1;
    const drawn masked = sample(*dev, logits, {r}, 1, portable);
    const double sum = std::exp(5.0) + std::exp(1.0) + std::exp(2.0) + 1;
    CHECK(without == 0);
    CHECK(masked.tokens[0] == 3);
    CHECK(std::abs(double{masked.logprobs[0]} + std::log(sum)) < 1e-5);
    CHECK(masked.top_ids[0] == 0);
  }
}

TEST_CASE("top_k of one and a tiny temperature are greedy; ids out of range are ignored") {
  auto dev = test::open_implementation(GENERATE(from_range(test::implementations())));
  const auto logits = test::random_floats(777, 13);
  const auto best =
      static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  for (std::uint64_t c = 0; c < 50; ++c) {
    request one, cold, odd;
    one.row.top_k = 1;
    cold.row.temperature = 1e-38f;
    odd.row.temperature = 0;
    odd.biases = {{-1, 1e9f}, {777, 1e9f}};
    odd.counts = {{-5, 1, 1}, {1 << 30, 1, 1}};
    for (request* r : {&one, &cold, &odd}) {
      r->row.counter = c;
      CHECK(sample(*dev, logits, {*r}).tokens[0] == best);
    }
  }
}

TEST_CASE("log-probabilities are of the raw logits, within 1e-5 of double") {
  auto dev = test::open_implementation(GENERATE(from_range(test::implementations())));
  const std::size_t vocab = 49152;
  auto logits = test::random_floats(vocab, 14, 4.0f);
  logits[100] = logits[40000] = 25; // a tie at the top
  logits[7] = not_a_number;
  logits[8] = -inf;
  double sum = 0;
  for (const float x : logits)
    if (x == x) sum += std::exp(double{x} - 25);
  const auto expected = [&](std::int32_t id) {
    return double{logits[static_cast<std::size_t>(id)]} - 25 - std::log(sum);
  };
  request r;
  r.row.n_top = 5;
  r.row.temperature = 3;
  r.row.repetition_penalty = 2;
  r.counts = {{100, 1, 0}};
  r.biases = {{123, 300.0f}, {40000, -inf}};
  std::vector<std::int32_t> order(vocab);
  std::iota(order.begin(), order.end(), 0);
  order.erase(order.begin() + 7);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
  });
  order.resize(5);
  for (const bool portable : {false, true}) {
    const drawn actual = sample(*dev, logits, {r}, 5, portable);
    CHECK(actual.tokens[0] == 123);
    CHECK(std::abs(double{actual.logprobs[0]} - expected(123)) < 1e-5);
    CHECK(actual.top_ids == order);
    for (std::size_t i = 0; i < 5; ++i)
      CHECK(std::abs(double{actual.top_logprobs[i]} - expected(order[i])) < 1e-5);
  }
  const std::vector<std::int32_t> ids{40000, 0, 8, 7};
  std::vector<float> rows;
  for (std::size_t i = 0; i < ids.size(); ++i)
    rows.insert(rows.end(), logits.begin(), logits.end());
  device_array<float> x(*dev, rows), out(*dev, std::vector<float>(ids.size()));
  device_array<std::int32_t> dids(*dev, ids);
  gpu::token_logprobs(*dev, gpu::view_2d(x.data(), dtype::f32, 4, static_cast<long>(vocab)),
                      dids.data(), out.data());
  CHECK(std::abs(double{out.get()[0]} - expected(40000)) < 1e-5);
  CHECK(std::abs(double{out.get()[1]} - expected(0)) < 1e-5);
  CHECK(out.get()[2] == -inf);
  CHECK(out.get()[3] == -inf);
}

TEST_CASE("fewer candidates than alternatives leave id -1 and -infinity") {
  auto dev = test::open_implementation(GENERATE(from_range(test::implementations())));
  request r;
  r.row.n_top = 3;
  r.row.temperature = 0;
  const drawn actual = sample(*dev, {not_a_number, 2, -inf, 1}, {r}, 3);
  CHECK(actual.top_ids == std::vector<std::int32_t>{1, 3, -1});
  CHECK(actual.top_logprobs[2] == -inf);
}

TEST_CASE("the generator gives Random123's published vectors") {
  using gpu::detail::philox4x32;
  const auto words = [](const gpu::detail::philox_counter& b) {
    return std::vector<std::uint32_t>(b.word, b.word + 4);
  };
  CHECK(words(philox4x32({{0, 0, 0, 0}}, 0, 0)) ==
        std::vector<std::uint32_t>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(words(philox4x32({{~0u, ~0u, ~0u, ~0u}}, ~0u, ~0u)) ==
        std::vector<std::uint32_t>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(words(philox4x32({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822,
                         0x299f31d0)) ==
        std::vector<std::uint32_t>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}
