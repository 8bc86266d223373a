#include "net/batch/batch_output.hpp"

#include <cerrno>

#include "net/batch/batch.hpp"

namespace twill::net {

result<nothing> batch_output::write(file to, std::string_view line) {
  auto& writer = of(to);
  if (!writer) {
    auto created = files_.create(tenant_);
    if (!created.ok()) return fail(created.code());
    if (name_) {
      const auto named = name_(to, created.value()->id());
      if (!named.ok()) return fail(named.code());
      created.value()->keep();
    }
    writer = std::move(created).value();
  }
  return writer->append(line);
}

result<nothing> batch_output::reopen(file which, const std::string& id) {
  auto reopened = files_.reopen(id, tenant_);
  if (reopened.ok()) {
    of(which) = std::move(reopened).value();
    return nothing{};
  }
  const auto error = reopened.code();
  if (error.code == decltype(error.code)(errc::unknown_file)) return nothing{};
  return fail(error);
}

result<std::int64_t> batch_output::read_answers(file which, std::unordered_set<std::string>& ids) {
  const auto& writer = of(which);
  if (!writer) return std::int64_t{0};
  const auto in = writer->read();
  if (!in) return fail(describe_failure(errno));
  std::string text;
  std::int64_t n_lines = 0, whole_bytes = 0;
  // A last line without a line end is incomplete.
  while (std::getline(*in, text) && !in->eof()) {
    auto id = answered_id(text);
    if (!id) break;
    ids.insert(std::move(*id));
    ++n_lines;
    whole_bytes += static_cast<std::int64_t>(text.size()) + 1;
  }
  if (in->bad()) return fail(describe_failure(EIO));
  if (whole_bytes < writer->bytes()) {
    const auto cut = writer->cut(whole_bytes);
    if (!cut.ok()) return fail(cut.code());
  }
  return n_lines;
}

result<std::string> batch_output::publish(file which, const std::string& filename) {
  const auto writer = std::move(of(which));
  if (!writer || writer->bytes() == 0) return std::string();
  const auto created = writer->publish({"", tenant_, filename, "batch_output", 0, 0});
  if (!created.ok()) return fail(created.code());
  return created.value().id;
}

void batch_output::account(ledger& to, const std::string& holder) const {
  for (const auto* growing : {&output_, &errors_})
    if (*growing) file_store::account_growing(to, holder, tenant_, (*growing)->bytes());
}

} // namespace twill::net
