// write_gguf: writes a GGUF file (version 3) with the tensors of gguf_plan.hpp. It holds the same
// model as the folder that would be written from the same recipe.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "models/synth/fill.hpp"
#include "tools/twill-synth/gguf_head.hpp"
#include "tools/twill-synth/gguf_kinds.hpp"
#include "tools/twill-synth/gguf_metadata.hpp"
#include "tools/twill-synth/gguf_plan.hpp"
#include "tools/twill-synth/write.hpp"

namespace twill::synth {
namespace {

constexpr std::int64_t chunk_values = 1 << 18;

result<const gguf_kind*> kind_of(const recipe& r, const write_options& options) {
  const std::string name = !options.gguf_kind.empty()     ? options.gguf_kind
                           : r.dtype == storage_type::f32 ? "F32"
                           : r.dtype == storage_type::f16 ? "F16"
                                                          : "BF16";
  const gguf_kind* kind = find_gguf_kind(name);
  if (kind == nullptr)
    return failure{errc::unsupported,
                   "the GGUF kind must be F32, F16, BF16, Q8_0, Q4_0 or Q4_1, got " + name};
  return kind;
}

/// The metadata and tensors of a recipe's file.
struct contents {
  std::string architecture;
  std::vector<gguf_tensor> tensors;
  const gguf_kind* matrices;

  const gguf_kind& kind_of(const gguf_tensor& t) const {
    return t.is_vector() ? *find_gguf_kind("F32") : *matrices;
  }
  std::int64_t bytes_of(const gguf_tensor& t) const {
    return t.values() / kind_of(t).block_values * kind_of(t).block_bytes;
  }
};

result<contents> contents_of(const recipe& r, const write_options& options) {
  auto architecture = gguf_architecture(r);
  if (!architecture.ok()) return architecture.error();
  auto kind = kind_of(r, options);
  if (!kind.ok()) return kind.error();
  contents c{std::move(architecture).value(), plan_gguf(r), kind.value()};
  for (const gguf_tensor& t : c.tensors)
    if (const std::int64_t n = c.kind_of(t).block_values; t.row_values() % n != 0)
      return failure{errc::unsupported, "`" + t.name + "`: rows must be a multiple of " +
                                            std::to_string(n) + " for " + c.matrices->name +
                                            ", got " + std::to_string(t.row_values())};
  return c;
}

void bring_to_unit_length(float* row, std::int64_t n) {
  const double squares = std::transform_reduce(row, row + n, 0.0, std::plus<>(),
                                               [](float x) { return double{x} * double{x}; });
  const double factor = 1 / std::max(std::sqrt(squares), 1e-12);
  for (std::int64_t i = 0; i < n; ++i)
    row[i] = static_cast<float>(row[i] * factor);
}

/// Produces the bytes of one tensor in chunks.
class tensor_stream {
public:
  tensor_stream(const gguf_tensor& t, const gguf_kind& kind, std::uint64_t seed)
      : tensor_(t), kind_(kind), filler_(t.source, seed) {}

  template <class Sink>
  result<nothing> to(const Sink& sink) const {
    const std::int64_t width = tensor_.row_values();
    const std::int64_t step = std::max<std::int64_t>(1, chunk_values / width);
    std::vector<std::byte> raw(static_cast<std::size_t>(step * tensor_.source.row_bytes()));
    std::vector<float> wide(static_cast<std::size_t>(step * width));
    std::vector<std::byte> out(static_cast<std::size_t>(step * width * 4));
    for (std::int64_t row = 0; row < tensor_.n_rows; row += step) {
      const std::int64_t n = std::min(step, tensor_.n_rows - row);
      fill(row, n, raw.data());
      widen(tensor_.source.type, raw.data(), n * width, wide.data());
      for (std::int64_t i = 0; tensor_.unit_rows && i < n; ++i)
        bring_to_unit_length(wide.data() + i * width, width);
      round_values(kind_, wide.data(), n * width, out.data());
      const auto size =
          static_cast<std::size_t>(n * width / kind_.block_values * kind_.block_bytes);
      if (auto sunk = sink(std::span<const std::byte>(out.data(), size)); !sunk.ok()) return sunk;
    }
    return nothing{};
  }

private:
  void fill(std::int64_t first, std::int64_t n, std::byte* out) const {
    if (tensor_.paired_head == 0) return filler_.fill(tensor_.source_row(first), n, out);
    for (std::int64_t row = first; row < first + n; ++row, out += tensor_.source.row_bytes())
      filler_.fill(tensor_.source_row(row), 1, out);
  }

  const gguf_tensor& tensor_;
  const gguf_kind& kind_;
  tensor_filler filler_;
};

std::string make_head(const recipe& r, const contents& c) {
  std::vector<gguf_tensor_entry> entries;
  for (const gguf_tensor& t : c.tensors)
    entries.push_back(
        {t.name, t.is_vector() ? std::vector{t.n_rows} : std::vector{t.row_values(), t.n_rows},
         c.kind_of(t).id, c.bytes_of(t)});
  return make_gguf_head(make_gguf_metadata(r, c.architecture), entries);
}

result<nothing> write_tensors(write_job& job, const contents& c, output_file& out) {
  constexpr std::byte zeros[gguf_alignment] = {};
  for (const gguf_tensor& t : c.tensors) {
    const tensor_stream stream(t, c.kind_of(t), job.model.seed);
    auto done = stream.to([&](std::span<const std::byte> bytes) {
      if (auto written = out.write(bytes); !written.ok()) return written;
      return job.advance(static_cast<std::int64_t>(bytes.size()));
    });
    if (!done.ok()) return done;
    const auto padding = static_cast<std::size_t>(gguf_aligned(c.bytes_of(t)) - c.bytes_of(t));
    if (auto padded = out.write(std::span(zeros, padding)); !padded.ok()) return padded;
  }
  return nothing{};
}

} // namespace

result<std::int64_t> gguf_bytes(const recipe& r, const write_options& options) {
  auto c = contents_of(r, options);
  if (!c.ok()) return c.error();
  std::int64_t sum = 0;
  for (const gguf_tensor& t : c.value().tensors)
    sum += c.value().bytes_of(t);
  return sum;
}

result<nothing> write_gguf(write_job& job, const std::string& name) {
  auto c = contents_of(job.model, job.options);
  if (!c.ok()) return c.error();
  auto file = job.out.add(name);
  if (!file.ok()) return file.error();
  output_file& out = file.value();
  if (auto done = out.write(make_head(job.model, c.value())); !done.ok()) return done;
  if (auto done = write_tensors(job, c.value(), out); !done.ok()) return done;
  return out.close();
}

} // namespace twill::synth
