// The part of batch_runner that reports the resources of batches to a ledger.
#include <string>
#include <utility>

#include "net/batch/active_batch.hpp"

namespace twill::net {
namespace {

constexpr const char* lines_running = "lines of batches that run";
constexpr const char* requests_running = "requests of batches";
constexpr const char* sequences_running = "sequences of batches";
constexpr const char* requests_followed = "requests that the batch thread follows";

} // namespace

void batch_runner::account(std::function<void(ledger)> callback) {
  thread_.post([this, callback = std::move(callback)] {
    ledger all;
    files_.account(all);
    batches_.account(all);
    for (const auto* some : {&adopted_, &active_})
      for (const auto& one : *some)
        account_batch(*one, all);
    for (const auto& one : left_)
      account_batch(*one, all);
    account_sent(all);
    callback(std::move(all));
  });
}

/// A batch may wait for a long time and still hold its files.
void batch_runner::account_batch(const active_batch& one, ledger& to) const {
  to.exists(one.id, true);
  to.held(batch_table::under_way, one.id);
  if (one.in) to.held(file_store::holds, one.id);
  one.out.account(to, one.id);
  to.taken(lines_running, one.lines_running);
  to.taken(requests_running, one.in_engine);
}

/// Each request in the engine is reported as a running request.
void batch_runner::account_sent(ledger& to) const {
  to.taken(sequences_running, sequences_);
  to.taken(requests_followed, static_cast<std::int64_t>(requests_.size()));
  for (const auto& line : lines_)
    to.held(lines_running, line->owner->id);
  for (const auto& [key, sent] : sent_) {
    const std::string holder = "requests of " + sent.line->owner->id;
    to.exists(holder);
    to.held(requests_running, holder);
    to.held(requests_followed, holder);
    to.held(sequences_running, holder, sent.line->generation.requests[sent.index].sampling.n);
  }
}

} // namespace twill::net
