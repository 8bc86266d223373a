#include "tools/twill-bench/accuracy/compare.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "models/compute.hpp"
#include "tools/twill-bench/accuracy/forced_decoder.hpp"

namespace twill::bench {
namespace {

/// Compares the two decoders at every position that has a next token.
tally run_side_by_side(forced_decoder& reference, forced_decoder& other,
                       const std::vector<token_sequence>& sequences) {
  tally sums;
  for (const token_sequence& s : sequences) {
    reference.begin(s);
    other.begin(s);
    for (logit_chunk wanted = reference.next(); wanted.n_rows() > 0; wanted = reference.next()) {
      const logit_chunk found = other.next();
      for (std::int64_t r = 0; r < wanted.n_rows(); ++r) {
        const auto next = static_cast<std::size_t>(wanted.first_position + r + 1);
        if (next == s.ids.size()) break;
        sums.add(wanted.row(r), found.row(r), s.ids[next],
                 next >= static_cast<std::size_t>(s.prompt_length));
      }
    }
  }
  return sums;
}

} // namespace

models::result<type_pair> parse_type_pair(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos)
    return models::failure{models::errc::unsupported,
                           "types must be COMPUTE/KV, such as bf16/f16, got \"" + text + "\""};
  return type_pair{text.substr(0, slash), text.substr(slash + 1)};
}

models::result<std::vector<tally>> compare_types(gpu::device& dev, const candidate& s,
                                                 const std::vector<type_pair>& pairs) {
  std::size_t longest = 0;
  for (const token_sequence& sequence : s.sequences)
    longest = std::max(longest, sequence.ids.size());
  const auto length = static_cast<std::int32_t>(longest);
  const models::compute_choice exact = {gpu::compute_type::f32, gpu::dtype::f32};
  auto reference = forced_decoder::load(dev, s.spec, *s.weights, exact, length);
  if (!reference.ok()) return reference.error();
  std::vector<tally> tallies;
  for (const type_pair& pair : pairs) {
    const auto types =
        models::resolve_compute(pair.compute, pair.kv, s.spec, *s.weights, dev.info());
    if (!types.ok()) return types.error();
    const auto weights = models::weights_for(types.value().compute, s.spec, s.weights, dev.info());
    auto other = forced_decoder::load(dev, s.spec, *weights, types.value(), length);
    if (!other.ok()) return other.error();
    tallies.push_back(run_side_by_side(reference.value(), other.value(), s.sequences));
  }
  return tallies;
}

} // namespace twill::bench
