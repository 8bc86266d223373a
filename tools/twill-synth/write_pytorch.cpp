// write_pytorch: writes PyTorch's zip files: a pickle (protocol 2) that lists the tensors, and one
// entry per storage.
//
// The pickle has the content that torch.save writes for a state dict: an OrderedDict whose values
// are calls of torch._utils._rebuild_tensor_v2 on persistent ids ("storage", type, key, device,
// values).
#include <cstdint>
#include <string>

#include "tools/twill-synth/write.hpp"
#include "tools/twill-synth/zip_writer.hpp"

namespace twill::synth {
namespace {

class pickle {
public:
  pickle() { out_ = "\x80\x02"; }
  pickle& op(char code) {
    out_ += code;
    return *this;
  }
  pickle& global(const char* module, const char* name) {
    out_ += 'c';
    out_ += module;
    out_ += '\n';
    out_ += name;
    out_ += '\n';
    return *this;
  }
  pickle& text(const std::string& s) {
    out_ += 'X';
    number(s.size(), 4);
    out_ += s;
    return *this;
  }
  pickle& integer(std::int64_t x) {
    if (x >= 0 && x < 256) {
      out_ += 'K';
      number(static_cast<std::uint64_t>(x), 1);
    } else if (x >= 0 && x < (std::int64_t{1} << 31)) {
      out_ += 'J';
      number(static_cast<std::uint64_t>(x), 4);
    } else {
      out_ += '\x8a'; // opcode LONG1
      out_ += '\x08';
      number(static_cast<std::uint64_t>(x), 8);
    }
    return *this;
  }
  pickle& integers(const std::vector<std::int64_t>& all) {
    op('(');
    for (const std::int64_t x : all)
      integer(x);
    return op('t');
  }
  pickle& empty_dict() { return global("collections", "OrderedDict").op(')').op('R'); }
  const std::string& bytes() const { return out_; }

private:
  void number(std::uint64_t x, int n) {
    for (int i = 0; i < n; ++i)
      out_ += static_cast<char>(x >> (8 * i) & 0xffU);
  }
  std::string out_;
};

const char* storage_name(element e) {
  switch (e) {
  case element::f32:
    return "FloatStorage";
  case element::f16:
    return "HalfStorage";
  case element::bf16:
    return "BFloat16Storage";
  case element::i32:
    return "IntStorage";
  }
  return "";
}

void add_tensor(pickle& p, const planned_tensor& t, std::size_t key) {
  std::vector<std::int64_t> strides(t.shape.size(), 1);
  for (std::size_t i = t.shape.size() - 1; i > 0; --i)
    strides[i - 1] = strides[i] * t.shape[i];
  p.text(t.name).global("torch._utils", "_rebuild_tensor_v2").op('(');
  p.op('(').text("storage").global("torch", storage_name(t.type)).text(std::to_string(key));
  // opcode Q loads the storage by its persistent id
  p.text("cpu").integer(t.rows() * t.row_values()).op('t').op('Q');
  p.integer(0).integers(t.shape).integers(strides).op('\x89'); // requires_grad is false
  p.empty_dict().op('t').op('R');
}

std::string make_pickle(const write_job& job, const shard& s) {
  pickle p;
  p.empty_dict().op('(');
  for (std::size_t i = s.first; i < s.end; ++i)
    add_tensor(p, job.tensors[i], i - s.first);
  p.op('u').op('.');
  return p.bytes();
}

result<nothing> write_pytorch_shard(write_job& job, const shard& s, const std::string& name) {
  auto file = job.out.add(name);
  if (!file.ok()) return file.error();
  zip_writer zip(file.value());
  const std::string root = name.substr(0, name.rfind('.')) + "/";
  if (auto done = zip.whole(root + "data.pkl", make_pickle(job, s)); !done.ok()) return done;
  if (auto done = zip.whole(root + "byteorder", "little"); !done.ok()) return done;
  for (std::size_t i = s.first; i < s.end; ++i) {
    const planned_tensor& t = job.tensors[i];
    if (auto done = zip.begin(root + "data/" + std::to_string(i - s.first), t.bytes()); !done.ok())
      return done;
    auto streamed = job.stream(t, [&](std::span<const std::byte> bytes) {
      if (auto written = zip.write(bytes); !written.ok()) return written;
      return job.advance(static_cast<std::int64_t>(bytes.size()));
    });
    if (!streamed.ok()) return streamed;
    if (auto done = zip.end(); !done.ok()) return done;
  }
  if (auto done = zip.whole(root + "version", "3\n"); !done.ok()) return done;
  if (auto done = zip.finish(); !done.ok()) return done;
  return file.value().close();
}

} // namespace

result<nothing> write_pytorch(write_job& job) {
  const auto shards = cut_shards(job.tensors, job.options.max_shard_bytes);
  for (std::size_t i = 0; i < shards.size(); ++i)
    if (auto done = write_pytorch_shard(job, shards[i],
                                        shard_name("pytorch_model", ".bin", i, shards.size()));
        !done.ok())
      return done;
  return write_index(job, shards, "pytorch_model", ".bin");
}

} // namespace twill::synth
