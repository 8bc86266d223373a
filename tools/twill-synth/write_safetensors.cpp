// write_safetensors: writes safetensors files: the length of a JSON header as u64, the header, and
// the bytes of the tensors (https://github.com/huggingface/safetensors, "Format").
#include <cstring>

#include "config/base/json_text.hpp"
#include "tools/twill-synth/write.hpp"

namespace twill::synth {
namespace {

std::string make_header(const write_job& job, const shard& s) {
  value_object header = {{"__metadata__", value_object{{"format", "pt"}}}};
  std::int64_t offset = 0;
  for (std::size_t i = s.first; i < s.end; ++i) {
    const planned_tensor& t = job.tensors[i];
    value_list shape;
    for (const std::int64_t n : t.shape)
      shape.emplace_back(n);
    header.emplace_back(t.name,
                        value_object{{"dtype", name_of(t.type)},
                                     {"shape", std::move(shape)},
                                     {"data_offsets", value_list{offset, offset + t.bytes()}}});
    offset += t.bytes();
  }
  std::string text = to_json(header);
  text.resize((text.size() + 7) / 8 * 8, ' '); // pads the header so that the data is aligned to 8
                                               // bytes
  return text;
}

result<nothing> write_safetensors_shard(write_job& job, const shard& s, const std::string& name) {
  auto file = job.out.add(name);
  if (!file.ok()) return file.error();
  output_file& out = file.value();
  const std::string header = make_header(job, s);
  const std::uint64_t length = header.size();
  char prefix[8];
  std::memcpy(prefix, &length, sizeof length);
  if (auto done = out.write(std::string_view(prefix, sizeof prefix)); !done.ok()) return done;
  if (auto done = out.write(header); !done.ok()) return done;
  for (std::size_t i = s.first; i < s.end; ++i) {
    auto done = job.stream(job.tensors[i], [&](std::span<const std::byte> bytes) {
      if (auto written = out.write(bytes); !written.ok()) return written;
      return job.advance(static_cast<std::int64_t>(bytes.size()));
    });
    if (!done.ok()) return done;
  }
  return out.close();
}

} // namespace

result<nothing> write_safetensors(write_job& job) {
  const auto shards = cut_shards(job.tensors, job.options.max_shard_bytes);
  for (std::size_t i = 0; i < shards.size(); ++i)
    if (auto done = write_safetensors_shard(job, shards[i],
                                            shard_name("model", ".safetensors", i, shards.size()));
        !done.ok())
      return done;
  return write_index(job, shards, "model", ".safetensors");
}

} // namespace twill::synth
