#include "models/text/grammar/compile.hpp"

#include <xxhash.h>

#include <condition_variable>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "models/text/grammar/helper/process.hpp"
#include "models/text/grammar/helper/request.hpp"

namespace twill::models::grammar {
namespace {

using key = std::pair<std::uint64_t, std::uint64_t>;
using answer = result<compiled_grammar_ptr>;

key key_of(const config::grammar_spec& spec) {
  const auto bytes = encoded(spec);
  const auto hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

/// True if the answer may be cached. Refusals for lack of time, memory or other resources may not,
/// because they depend on what else the machine does: a second try could give another answer.
bool is_lasting(const answer& a) {
  return a.ok() || (a.code() != errc::timed_out && a.code() != errc::out_of_memory &&
                    a.code() != errc::abandoned && a.code() != errc::overdue &&
                    a.code() != errc::helper_failed && a.code() != errc::no_resources);
}

std::size_t size_of(const answer& a) {
  return 256 + (a.ok() ? memory_bytes(*a.value()) : a.detail().size());
}

} // namespace

struct grammar_compiler::state {
  struct entry {
    std::optional<answer> done; ///< empty while a caller compiles the grammar
    std::list<key>::iterator age;
    std::size_t bytes = 0;
  };
  vocabulary_ptr tokens;
  compile_limits limits;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<key, entry> entries;
  std::list<key> by_age; ///< finished entries only; the one unused for longest is first
  std::size_t bytes = 0;

  void keep(const key& k, const answer& a) {
    auto& e = entries.at(k);
    e.done = a;
    e.bytes = size_of(a);
    bytes += e.bytes;
    e.age = by_age.insert(by_age.end(), k);
    while (bytes > limits.cache_bytes && by_age.size() > 1) {
      const auto oldest = entries.find(by_age.front());
      bytes -= oldest->second.bytes;
      entries.erase(oldest);
      by_age.pop_front();
    }
  }
};

grammar_compiler::grammar_compiler(vocabulary_ptr tokens, compile_limits limits)
    : state_(std::make_unique<state>()) {
  state_->tokens = std::move(tokens);
  state_->limits = std::move(limits);
}

grammar_compiler::~grammar_compiler() = default;

const vocabulary_ptr& grammar_compiler::tokens() const {
  return state_->tokens;
}

std::optional<answer> grammar_compiler::cached(const config::grammar_spec& spec) {
  auto& s = *state_;
  const auto k = key_of(spec);
  const std::lock_guard lock(s.mutex);
  const auto found = s.entries.find(k);
  if (found == s.entries.end() || !found->second.done) return std::nullopt;
  s.by_age.splice(s.by_age.end(), s.by_age, found->second.age);
  return *found->second.done;
}

answer grammar_compiler::compile(const config::grammar_spec& spec,
                                 const std::function<bool()>& is_abandoned) {
  auto& s = *state_;
  std::size_t length = spec.text.size();
  for (const auto& choice : spec.choices)
    length += choice.size();
  for (const auto& frame : spec.frames)
    length += frame.before.size() + frame.schema.size() + frame.after.size();
  if (length > s.limits.max_spec_bytes)
    return failure{errc::too_large, "a schema or grammar may have at most " +
                                        std::to_string(s.limits.max_spec_bytes) + " bytes, got " +
                                        std::to_string(length)};
  const auto k = key_of(spec);
  std::unique_lock lock(s.mutex);
  while (true) {
    const auto found = s.entries.find(k);
    if (found == s.entries.end()) break;
    if (found->second.done) {
      s.by_age.splice(s.by_age.end(), s.by_age, found->second.age);
      return *found->second.done;
    }
    s.changed.wait(lock);
  }
  s.entries.emplace(k, state::entry{});
  lock.unlock();
  const auto made = compile_in_helper(spec, s.tokens, s.limits, is_abandoned);
  lock.lock();
  // A caller that waits for an answer which does not last compiles the grammar itself.
  if (is_lasting(made))
    s.keep(k, made);
  else
    s.entries.erase(k);
  s.changed.notify_all();
  return made;
}

} // namespace twill::models::grammar
