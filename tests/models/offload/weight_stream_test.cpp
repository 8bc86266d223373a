// Weights that are streamed to the device from host memory or disk: they have the same bits as
// resident weights, for every family and kind of weights, and faults end in an error.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <unistd.h>

#include "models/checkpoint/folder.hpp"
#include "models/checkpoint/half.hpp"
#include "models/compute.hpp"
#include "models/memory_estimate/memory_estimate.hpp"
#include "models/model.hpp"
#include "models/offload/int4_weights.hpp"
#include "models/offload/streams/checksum.hpp"
#include "models/offload/streams/page_sums.hpp"
#include "models/offload/streams/weight_stream.hpp"
#include "models/offload/tiers.hpp"
#include "tests/catch.hpp"
#include "tests/gpu/tested_device.hpp"
#include "tests/models/support/faulty_store.hpp"
#include "tests/models/support/golden_folder.hpp"
#include "tests/paths.hpp"
#include "tests/support/worse.hpp"

using namespace twill::models;
using namespace twill::test;
namespace gpu = twill::gpu;
using offload::tier;

namespace {

/// Runs a prompt and three greedy tokens. Returns all logits.
std::vector<logit_row> run_greedy(decoder_runner& runner, const id_list& prompt) {
  std::vector<logit_row> rows = runner.step({{0, prompt, true}});
  for (int i = 0; i < 3; ++i)
    rows.push_back(runner.step({{0, {argmax(rows.back())}}}).front());
  runner.release(0);
  return rows;
}

offload::offload_options random_homes(std::mt19937& random) {
  offload::offload_options o;
  o.weights.device = static_cast<std::int32_t>(random() % 100);
  o.weights.host =
      static_cast<std::int32_t>(random() % static_cast<unsigned>(101 - o.weights.device));
  o.direct_reads = random() % 2 == 0;
  o.ring_layers = 2 + static_cast<std::int32_t>(random() % 5);
  o.io_threads = 1 + static_cast<std::int32_t>(random() % 4);
  o.sep_layer = random() % 2 == 0;
  o.pin_host = random() % 2 == 0;
  return o;
}

} // namespace

TEST_CASE("a decoder takes what was projected, and its steps take nothing more", "[offload]") {
  std::mt19937 random(23);
  for (const std::string& name : golden_folders()) {
    CAPTURE(name);
    const golden_folder c(name);
    const auto compute =
        std::vector{gpu::compute_type::f32, gpu::compute_type::bf16, gpu::compute_type::int8,
                    gpu::compute_type::w8a8}[random() % 4];
    CAPTURE(gpu::name_of(compute));
    const auto weights = weights_for(compute, c.spec, c.weights, shared_device().info());
    auto options = golden_options(compute, gpu::dtype::f32);
    options.offload = random_homes(random);
    CAPTURE(options.offload.weights.device, options.offload.weights.host,
            options.offload.sep_layer);
    const auto dev = open_tested(); // a new device, whose scratch memory is the decoder's
    decoder_runner runner(c.spec, *weights, options, *dev);
    const std::int64_t loaded = dev->memory_used();
    const auto streamed = estimate_streamed_weights(c.spec, *weights, options);
    CHECK(runner.decoder().weight_bytes() >= streamed.resident + streamed.ring);
    CHECK(runner.decoder().stream()->placed().device == streamed.resident);
    CHECK(runner.decoder().stream()->ring_bytes() == streamed.ring);
    run_greedy(runner, c.prompts[0].ids);
    CHECK(dev->memory_used() == loaded);
  }
}

TEST_CASE("a spec that is not valid needs no memory", "[offload]") {
  const golden_folder c("llama-tiny-fp16");
  const auto options = golden_options();
  const auto dev = open_tested();
  CHECK(estimate_scratch_bytes(*dev, c.spec, *c.weights, options) > 0);
  for (const bool heads : {true, false}) {
    model_spec spec = c.spec;
    (heads ? spec.n_kv_heads : spec.n_layers) = 0;
    CHECK(estimate_scratch_bytes(*dev, spec, *c.weights, options) == 0);
    CHECK(estimate_streamed_weights(spec, *c.weights, options).resident == 0);
  }
}

TEST_CASE("tensors go to the tier in whose share their middle lies", "[offload]") {
  const std::vector<std::int64_t> sizes = {30, 10, 40, 20};
  using all = std::vector<tier>;
  CHECK(offload::assign_tiers(sizes, {100, 0}) == all(4, tier::device));
  CHECK(offload::assign_tiers(sizes, {0, 100}) == all(4, tier::host));
  CHECK(offload::assign_tiers(sizes, {0, 0}) == all(4, tier::disk));
  // The middles of the four tensors are at 15, 35, 60 and 90 per cent.
  CHECK(offload::assign_tiers(sizes, {30, 40}) ==
        all{tier::disk, tier::host, tier::host, tier::device});
  CHECK(offload::assign_tiers(sizes, {10, 75}) ==
        all{tier::host, tier::host, tier::host, tier::device});
  CHECK(offload::assign_tiers({}, {10, 75}).empty());
}

TEST_CASE("over many layers each tier gets its share, to within a tensor", "[offload]") {
  const std::vector<std::int64_t> layer = {11, 7, 35, 18};
  for (const offload::shares wanted :
       {offload::shares{50, 0}, {25, 0}, {33, 33}, {0, 100}, {90, 5}}) {
    offload::placed_bytes at;
    for (int i = 0; i < 30; ++i) {
      const auto homes = offload::assign_tiers(layer, wanted, at);
      for (std::size_t t = 0; t < layer.size(); ++t)
        (homes[t] == tier::device ? at.device
         : homes[t] == tier::host ? at.host
                                  : at.disk) += layer[t];
      const double all = 71.0 * (i + 1);
      CAPTURE(wanted.device, wanted.host, i);
      CHECK(std::abs(static_cast<double>(at.device) - wanted.device * all / 100) <= 35);
      CHECK(std::abs(static_cast<double>(at.disk) -
                     (100 - wanted.device - wanted.host) * all / 100) <= 35);
    }
  }
}

TEST_CASE("things used in turn are spread evenly over the tiers", "[offload]") {
  using all = std::vector<tier>;
  CHECK(offload::spread_tiers(0, {50, 0}).empty());
  CHECK(offload::spread_tiers(3, {100, 0}) == all(3, tier::device));
  CHECK(offload::spread_tiers(3, {0, 100}) == all(3, tier::host));
  CHECK(offload::spread_tiers(3, {0, 0}) == all(3, tier::disk));
  for (const offload::shares wanted :
       {offload::shares{50, 0}, {25, 0}, {75, 0}, {34, 33}, {10, 80}}) {
    const auto homes = offload::spread_tiers(40, wanted);
    std::map<tier, int> so_far;
    for (int n = 1; n <= 40; ++n) {
      ++so_far[homes[static_cast<std::size_t>(n - 1)]];
      CAPTURE(wanted.device, wanted.host, n);
      const auto near = [n](int have, int share) {
        return std::abs(have - share * n / 100.0) <= 1;
      };
      CHECK(near(so_far[tier::device], wanted.device));
      CHECK(near(so_far[tier::host], wanted.host));
      CHECK(near(so_far[tier::disk], 100 - wanted.device - wanted.host));
    }
  }
}

TEST_CASE("a checksum notices any flipped bit and any other length", "[offload]") {
  std::mt19937 random(5);
  for (const std::size_t n : {1U, 7U, 64U, 65U, 1000U, 4096U}) {
    std::vector<unsigned char> bytes(n);
    for (auto& b : bytes)
      b = static_cast<unsigned char>(random());
    const auto size = static_cast<std::int64_t>(n);
    const std::uint64_t sum = offload::checksum(bytes.data(), size);
    CHECK(offload::checksum(bytes.data(), size) == sum);
    CHECK(offload::checksum(bytes.data(), size - 1) != sum);
    for (int i = 0; i < 50; ++i) {
      const std::size_t at = random() % n;
      const auto bit = static_cast<unsigned char>(1U << (random() % 8));
      bytes[at] ^= bit;
      CHECK(offload::checksum(bytes.data(), size) != sum);
      bytes[at] ^= bit;
    }
  }
}

TEST_CASE("a stretch is checked when it is read first, then once in so many reads", "[offload]") {
  constexpr std::size_t stretches = 37;
  for (const std::int32_t every : {1, 2, 4, 200}) {
    CAPTURE(every);
    offload::read_checks checks(every, stretches);
    std::vector<int> unchecked(stretches, 0);
    std::size_t due_reads = 0;
    constexpr int reads = 1000;
    for (int read = 0; read < reads; ++read)
      for (std::size_t i = 0; i < stretches; ++i) {
        const bool due = checks.due(i);
        due_reads += due ? 1 : 0;
        unchecked[i] = due ? 0 : unchecked[i] + 1;
        if (read == 0) CHECK(due);
        CHECK(unchecked[i] < every);
      }
    // Due are the first read, the reads after a counter wraps, and one read of `every`.
    CHECK(due_reads <= stretches * (reads / static_cast<std::size_t>(every) + 2 + reads / 256));
    if (every < 2) continue;
    checks.written(7);
    CHECK(checks.due(7));
  }
}

TEST_CASE("a page that changed is noticed at its first read, or within the next few", "[offload]") {
  constexpr std::int64_t pages = 5, bytes = pages * offload::store_alignment;
  std::vector<unsigned char> data(bytes, 3);
  offload::page_sums sums(bytes, 4);
  CHECK_FALSE(sums.first_wrong(0, data.data(), bytes)); // never written: all bytes are accepted
  sums.note(0, data.data(), bytes);
  CHECK_FALSE(sums.first_wrong(0, data.data(), bytes));
  const std::int64_t at = 3 * offload::store_alignment;
  data[static_cast<std::size_t>(at) + 100] ^= 1;
  int reads = 1;
  std::optional<std::int64_t> wrong;
  while (!(wrong = sums.first_wrong(0, data.data(), bytes)) && reads < 10)
    ++reads;
  CHECK(reads <= 4);
  CHECK(wrong == at);
  sums.note(0, data.data(), bytes);
  data[100] ^= 1;
  CHECK(sums.first_wrong(0, data.data(), bytes) == 0);
}

TEST_CASE("weights in any tiers give the bits of resident ones, for every family", "[offload]") {
  std::mt19937 random(11);
  auto names = golden_folders();
  names.insert(names.end(), golden_variants().begin(), golden_variants().end());
  for (const std::string& name : names) {
    CAPTURE(name);
    const golden_folder c(name);
    const id_list& prompt = c.prompts[0].ids;
    const auto compute = std::vector{gpu::compute_type::f32, gpu::compute_type::int8,
                                     gpu::compute_type::w8a8}[random() % 3];
    auto options = compute == gpu::compute_type::f32 ? golden_options()
                                                     : golden_options(compute, gpu::dtype::f16);
    const auto weights = weights_for(compute, c.spec, c.weights, shared_device().info());
    CAPTURE(gpu::name_of(compute));
    std::vector<logit_row> wanted;
    {
      decoder_runner resident(c.spec, *weights, options);
      CHECK(resident.decoder().stream() == nullptr);
      wanted = run_greedy(resident, prompt);
    }
    for (int round = 0; round < 3; ++round) {
      options.offload = random_homes(random);
      if (round == 0) options.offload.weights = {0, 0}; // all of it on the disk
      CAPTURE(options.offload.weights.device, options.offload.weights.host,
              options.offload.sep_layer);
      decoder_runner streamed(c.spec, *weights, options);
      REQUIRE(streamed.decoder().stream() != nullptr);
      CHECK(streamed.decoder().n_stages() == c.spec.n_layers * (options.offload.sep_layer ? 2 : 1));
      CHECK(run_greedy(streamed, prompt) == wanted);
      CHECK(run_greedy(streamed, prompt) == wanted);
      if (round == 0) CHECK(streamed.decoder().stream()->stats().disk_bytes > 0);
    }
  }
}

TEST_CASE("weights take at least the time that a simulated link says", "[offload]") {
  const golden_folder c("opt-tiny-fp32");
  auto options = golden_options();
  options.offload.link_bytes_per_second = 3e7;
  options.offload.ring_layers = 1; // every pass fetches every layer
  for (const std::int32_t on_host : {0, 100}) {
    CAPTURE(on_host);
    options.offload.weights = {0, on_host};
    const auto began = std::chrono::steady_clock::now();
    decoder_runner streamed(c.spec, *c.weights, options);
    run_greedy(streamed, {1, 2, 3});
    const offload::ring_stats moved = streamed.decoder().stream()->stats();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    CHECK(moved.disk_bytes + moved.host_bytes > 3'000'000);
    CHECK(took.count() > 0.9 * static_cast<double>(moved.disk_bytes + moved.host_bytes) / 3e7);
  }
}

TEST_CASE("the ring's memory is so many whole layers, however little of each travels",
          "[offload]") {
  const auto model = open_model("dummy:opt-125m?layers=12&hidden=192&heads=4&mlp=768&vocab=3000");
  REQUIRE(model.ok());
  auto options = golden_options();
  options.n_blocks = 8;
  const auto ring_bytes = [&](std::int32_t device_percent, std::int32_t ring_layers) {
    options.offload.weights = {device_percent, 100 - device_percent};
    options.offload.ring_layers = ring_layers;
    decoder_runner streamed(model.value()->spec, *model.value()->weights, options);
    return streamed.decoder().stream()->ring_bytes();
  };
  const std::int64_t layer = ring_bytes(0, 1);
  CHECK(ring_bytes(0, 3) == 3 * layer);
  CHECK(ring_bytes(70, 3) > 2 * layer);
  CHECK(ring_bytes(70, 3) <= 3 * layer);
  CHECK(ring_bytes(70, 1) < layer); // a ring of one layer loads nothing ahead

  // OPT's MLP has twice the weights of its attention.
  options.offload.sep_layer = true;
  const std::int64_t part = ring_bytes(0, 1);
  CHECK(part > 2 * layer / 3 - offload::store_alignment);
  CHECK(part < 2 * layer / 3 + offload::store_alignment);
  CHECK(ring_bytes(0, 3) == 3 * part);
  CHECK(ring_bytes(70, 3) <= 3 * part);
}

TEST_CASE("a model whose weights exceed the device's memory runs within it", "[offload]") {
  const auto model = open_model("dummy:opt-125m?layers=12&hidden=192&heads=4&mlp=768&vocab=3000");
  REQUIRE(model.ok());
  auto options = golden_options();
  options.n_blocks = 8;
  options.max_step_tokens = 64;
  options.max_sequences = options.max_logit_rows = 4;
  const std::int64_t before = shared_device().memory_used();
  std::int64_t resident = 0, everything = 0;
  {
    decoder_runner all(model.value()->spec, *model.value()->weights, options);
    resident = all.decoder().weight_bytes();
    everything = shared_device().memory_used() - before;
  }
  options.offload.weights = {0, 0};
  options.offload.ring_layers = 2;
  decoder_runner streamed(model.value()->spec, *model.value()->weights, options);
  CHECK(streamed.decoder().weight_bytes() < resident / 2);
  CHECK(shared_device().memory_used() - before < everything - resident / 2);
  CHECK(run_greedy(streamed, {1, 2, 3}).size() == 6);
}

TEST_CASE("streamed weights take host memory from the account of all tiers", "[offload]") {
  const golden_folder c("llama-tiny-fp16");
  auto options = golden_options();
  options.offload.weights = {0, 60};
  options.offload.resources = std::make_shared<offload::tier_resources>();
  offload::tier_budget& host = options.offload.resources->host();
  const auto load = [&] { return decoder::load(shared_device(), c.spec, *c.weights, options, {}); };
  const std::int64_t others = host.free() - 1000;
  REQUIRE(host.take(others)); // as KV blocks do
  const auto failed = load();
  REQUIRE_FALSE(failed.ok());
  CHECK(failed.code() == errc::out_of_memory);
  CHECK(failed.detail().find("the host tier must hold") != std::string::npos);
  CHECK(host.taken() == others);
  host.give_back(others);
  {
    const auto loaded = load();
    REQUIRE(loaded.ok());
    CHECK(host.taken() == loaded.value()->stream()->placed().host);
  }
  CHECK(host.taken() == 0);
}

TEST_CASE("weights are streamed on shared I/O threads beside a user whose disk hangs",
          "[offload]") {
  const golden_folder c("llama-tiny-fp16");
  auto options = golden_options();
  decoder_runner resident(c.spec, *c.weights, options);
  const auto wanted = run_greedy(resident, {1, 2, 3});
  for (const std::int32_t on_host : {0, 50}) {
    options.offload.weights = {0, on_host};
    options.offload.ring_layers = 2;
    options.offload.resources = std::make_shared<offload::tier_resources>();
    const auto other = options.offload.resources->threads()->join({2, 1, 1});
    std::promise<void> ends; // destroyed before `other`, so that its tasks always end
    const auto end = ends.get_future().share();
    for (int n = 0; n < 4; ++n)
      other->post([end](std::size_t) { end.wait(); });
    {
      decoder_runner streamed(c.spec, *c.weights, options);
      CHECK(run_greedy(streamed, {1, 2, 3}) == wanted);
    }
    CHECK_FALSE(other->close(std::chrono::milliseconds(1)));
  }
}

TEST_CASE("faults of the disk tier are errors of the load or the step", "[offload]") {
  const golden_folder c("llama-tiny-gptq");
  auto options = golden_options();
  options.offload.weights = {0, 0};
  options.offload.ring_layers = 2;
  const auto faults = std::make_shared<store_faults>();
  options.offload.open_store = [faults]() -> result<std::unique_ptr<offload::disk_store>> {
    return std::unique_ptr<offload::disk_store>(std::make_unique<faulty_store>(faults));
  };
  const auto load = [&] { return decoder::load(shared_device(), c.spec, *c.weights, options, {}); };
  const std::vector<std::int32_t> tokens = {1, 2}, positions = {0, 1}, first = {0, 2},
                                  lengths = {2}, table = {0}, rows = {1};
  const step_batch step = {tokens, positions, first, lengths, table, 1, rows, lengths};
  {
    auto fine = load();
    REQUIRE(fine.ok());
    REQUIRE(fine.value()->forward(step).ok());
  }
  const std::int64_t memory = shared_device().memory_used();
  SECTION("a full disk") {
    for (const std::int64_t capacity : {0, 4096, 100'000}) {
      faults->capacity = capacity;
      const auto failed = load();
      REQUIRE_FALSE(failed.ok());
      CHECK(failed.code() == errc::file_unwritable);
      CHECK(failed.detail().find("no space left") != std::string::npos);
      CHECK(failed.detail().find("of weights are there already") != std::string::npos);
    }
  }
  SECTION("short reads and flipped bits, whenever they begin") {
    for (const bool flip : {false, true})
      for (int later = 0; later < 40; later += 3) {
        faults->fail_read = faults->flip_read = -1;
        auto loaded = load();
        REQUIRE(loaded.ok());
        (flip ? faults->flip_read : faults->fail_read) = faults->reads + later;
        bool failed = false;
        for (int i = 0; i < 40 && !failed; ++i) {
          const auto ran = loaded.value()->forward(step);
          failed = !ran.ok();
          if (!failed) continue;
          CHECK(ran.code() == (flip ? errc::bad_format : errc::file_unreadable));
          CHECK(ran.detail().find(flip ? "checksum" : "ends before") != std::string::npos);
        }
        CHECK(failed);
      }
  }
  CHECK(shared_device().memory_used() == memory);
}

TEST_CASE("a tier without room refuses the model with the numbers", "[offload]") {
  const golden_folder c("opt-tiny-fp32");
  auto options = golden_options();
  options.offload.weights = {0, 100};
  options.offload.host_bytes = 1000;
  const auto failed = decoder::load(shared_device(), c.spec, *c.weights, options, {});
  REQUIRE_FALSE(failed.ok());
  CHECK(failed.code() == errc::out_of_memory);
  CHECK(failed.detail().find("host tier") != std::string::npos);
  options.offload.weights = {0, 0};
  options.offload.dir = "/no/such/folder";
  const auto nowhere = decoder::load(shared_device(), c.spec, *c.weights, options, {});
  REQUIRE_FALSE(nowhere.ok());
  CHECK(nowhere.code() == errc::file_unwritable);
  CHECK(nowhere.detail().find("offload.dir") != std::string::npos);
}

TEST_CASE("a file that loses its end is an error of the read", "[offload]") {
  for (const bool direct : {false, true}) {
    auto store = offload::open_file_store("", direct);
    REQUIRE(store.ok());
    auto page = gpu::host_buffer::allocate(8192, "pages");
    REQUIRE(page.ok());
    page.value().data()[5000] = 7;
    REQUIRE(store.value()->write(0, page.value().data(), 8192).ok());
    page.value().data()[5000] = 0;
    REQUIRE(store.value()->read(0, page.value().data(), 8192).ok());
    CHECK(page.value().data()[5000] == 7);
    const auto past = store.value()->read(4096, page.value().data(), 8192);
    REQUIRE_FALSE(past.ok());
    CHECK(past.code() == errc::file_unreadable);
  }
}

namespace {
int failing_reads = 0; ///< the number of reads that still have to fail
ssize_t failing_pread(int file, void* to, std::size_t bytes, off_t offset) {
  if (failing_reads-- <= 0) return ::pread(file, to, bytes, offset);
  errno = EIO;
  return -1;
}
} // namespace

TEST_CASE("a read that fails for a moment is tried again, one that goes on failing is an error",
          "[offload]") {
  auto store = offload::open_file_store("", false, failing_pread);
  REQUIRE(store.ok());
  auto page = gpu::host_buffer::allocate(4096, "page");
  REQUIRE(page.ok());
  page.value().data()[100] = 7;
  REQUIRE(store.value()->write(0, page.value().data(), 4096).ok());
  page.value().data()[100] = 0;
  failing_reads = 4;
  REQUIRE(store.value()->read(0, page.value().data(), 4096).ok());
  CHECK(page.value().data()[100] == 7);
  failing_reads = 1000;
  const auto failed = store.value()->read(0, page.value().data(), 4096);
  REQUIRE_FALSE(failed.ok());
  CHECK(failed.code() == errc::file_unreadable);
  CHECK(failing_reads > 900); // the number of retries is limited
}

TEST_CASE("a checkpoint that is shortened before it is loaded is an error of the load",
          "[offload]") {
  namespace fs = std::filesystem;
  const fs::path from = golden_dir() + "/llama-tiny-fp16";
  const auto scratch =
      fs::temp_directory_path() / ("twill-shortened-" + std::to_string(::getpid()));
  fs::copy(from, scratch);
  {
    auto opened = folder::open(scratch.string());
    REQUIRE(opened.ok());
    const auto weights = opened.value()->weights();
    const auto spec = families::spec_of(opened.value()->config(), *weights);
    REQUIRE(spec.ok());
    const auto load = [&] {
      return decoder::load(shared_device(), spec.value(), *weights, golden_options(), {});
    };
    CHECK(load().ok());
    for (const auto& file : fs::directory_iterator(scratch))
      if (file.path().extension() == ".safetensors") fs::resize_file(file.path(), 4096);
    const auto failed = load();
    REQUIRE_FALSE(failed.ok());
    CHECK(failed.code() == errc::file_unreadable);
    CHECK(failed.detail().find("shortened") != std::string::npos);
  }
  fs::remove_all(scratch);
}

TEST_CASE("a checksum depends on the last byte of a whole transfer, and of more", "[offload]") {
  std::vector<unsigned char> bytes(3 * (1 << 20) + 5);
  for (const std::size_t at :
       {std::size_t{0}, std::size_t{(1 << 20) - 1}, std::size_t{1 << 20}, bytes.size() - 1}) {
    const auto size = static_cast<std::int64_t>(bytes.size());
    const std::uint64_t before = offload::checksum(bytes.data(), size);
    bytes[at] ^= 1;
    CHECK(offload::checksum(bytes.data(), size) != before);
    bytes[at] ^= 1;
  }
}

TEST_CASE("a file's space is had at once, or the disk is too small", "[offload]") {
  auto store = offload::open_file_store("", true);
  REQUIRE(store.ok());
  REQUIRE(store.value()->reserve(1 << 20).ok());
  auto page = gpu::host_buffer::allocate(4096, "page");
  REQUIRE(page.ok());
  CHECK(store.value()->read((1 << 20) - 4096, page.value().data(), 4096).ok());
  const auto failed = store.value()->reserve(std::int64_t{1} << 60);
  REQUIRE_FALSE(failed.ok());
  CHECK(failed.code() == errc::file_unwritable);
  CHECK(failed.detail().find("reserving") != std::string::npos);
}

TEST_CASE("compressed matrices are within half a step of their values, and say when one is not "
          "finite",
          "[offload]") {
  const golden_folder c("llama-tiny-fp16");
  const auto small = offload::int4_weights(c.weights, {c.spec.names.embedding});
  CHECK(small->matrix(c.spec.names.embedding).value().group == 0);
  const std::string name = layer_tensor(c.spec.names.q, 0);
  const auto dense = c.weights->matrix(name);
  const auto grouped = small->matrix(name);
  REQUIRE(grouped.ok());
  REQUIRE(grouped.value().kind == gpu::weight_kind::grouped_u4);
  const auto cols = static_cast<std::size_t>(grouped.value().cols);
  std::vector<std::uint8_t> codes(cols);
  std::vector<float> scales(cols / 64), offsets(cols / 64);
  double worst = 0;
  for (std::int64_t row = 0; row < grouped.value().rows; ++row) {
    grouped.value().grouped(row, {codes.data(), scales.data(), offsets.data()});
    const auto* values = static_cast<const std::uint16_t*>(dense.value().dense_row(row));
    for (std::size_t k = 0; k < cols; ++k) {
      const double decoded = double{scales[k / 64]} * codes[k] + offsets[k / 64];
      const double step = double{scales[k / 64]};
      worst = twill::test::worse(worst, std::abs(decoded - double{widen_f16(values[k])}) / step);
    }
  }
  CHECK(worst < 0.5001);

  std::vector<float> bad(64, 1.0F);
  bad[40] = NAN;
  struct one_matrix final : checkpoint {
    explicit one_matrix(const std::vector<float>& v) : values(v) {}
    std::vector<tensor_info> tensors() const override { return {}; }
    const tensor_info* find(std::string_view) const override { return nullptr; }
    result<gpu::weight_source> matrix(std::string_view) const override {
      gpu::weight_source s;
      s.rows = 1;
      s.cols = 64;
      s.dense_row = [this](std::int64_t) -> const void* { return values.data(); };
      return s;
    }
    result<std::vector<float>> vector(std::string_view) const override { return values; }
    const std::vector<float>& values;
  };
  const auto broken = offload::int4_weights(std::make_shared<one_matrix>(bad), {});
  CHECK_FALSE(gpu::pack(shared_device(), broken->matrix("any").value(), "any").ok());
}
