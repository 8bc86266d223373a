#include "tools/twill/fleet_view.hpp"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "tools/common/terminal.hpp"
#include "tools/twill/number_text.hpp"
#include "tools/twill/text_table.hpp"

namespace twill::tools {
namespace {

/// The counters of a model. They only grow while its daemon runs.
constexpr double model_load::*counters[] = {
    &model_load::prompt_tokens, &model_load::generated_tokens, &model_load::finished,
    &model_load::failed,        &model_load::first_token_s,    &model_load::first_tokens,
    &model_load::between_s,     &model_load::between,          &model_load::looked_up_tokens,
    &model_load::cached_tokens};

/// The numbers of one row. add() sums the numbers of several rows for the totals.
struct fleet_numbers {
  model_load since_start; ///< gauges, and counters since the daemon's start
  model_load grown;       ///< counters only: the growth between the last two queries
  double out_s = 0, in_s = 0;

  void add(const fleet_numbers& more) {
    for (const auto part : counters) {
      since_start.*part += more.since_start.*part;
      grown.*part += more.grown.*part;
    }
    for (const auto gauge : {&model_load::running, &model_load::waiting,
                             &model_load::kv_used_blocks, &model_load::kv_blocks})
      since_start.*gauge += more.since_start.*gauge;
    out_s += more.out_s;
    in_s += more.in_s;
  }
};

fleet_numbers numbers_of(const fleet_member& member, const std::string& model) {
  fleet_numbers row;
  row.since_start = member.now()->loads.at(model);
  if (!member.before()) return row;
  const auto old = member.before()->loads.find(model);
  if (old == member.before()->loads.end()) return row;
  for (const auto part : counters)
    row.grown.*part = row.since_start.*part - old->second.*part;
  const double seconds =
      std::chrono::duration<double>(member.now()->at - member.before()->at).count();
  row.out_s = share(row.grown.generated_tokens, seconds);
  row.in_s = share(row.grown.prompt_tokens, seconds);
  return row;
}

constexpr std::size_t longest_cell = 200, longest_note = 1000; ///< in bytes

/// Text from a daemon as one line: control characters are replaced, and the text is cut to `most`
/// bytes.
std::string cell_of(std::string_view text, std::size_t most = longest_cell) {
  const auto is_inside_character = [&] {
    return (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80;
  };
  if (text.size() > most) {
    while (most > 0 && is_inside_character())
      --most;
    text = text.substr(0, most);
  }
  std::string out = printable(text);
  for (char& c : out)
    if (c == '\n' || c == '\t') c = ' ';
  return out;
}

/// The label of each daemon: its name if no other daemon has the same one, otherwise its address.
std::vector<std::string> labels_of(const std::vector<fleet_member>& fleet) {
  std::map<std::string, int> uses;
  for (const auto& member : fleet)
    ++uses[member.name()];
  std::vector<std::string> labels;
  for (const auto& member : fleet)
    labels.push_back(cell_of(member.name().empty() || uses[member.name()] > 1 ? member.address()
                                                                              : member.name()));
  return labels;
}

std::string state_cell(const fleet_member& member) {
  using enum fleet_member::standing;
  switch (member.now_standing()) {
  case not_asked:
    return "asking";
  case no_answer:
    return "no answer";
  case other_server:
    return "no twilld";
  case answers:
    break;
  }
  return member.now()->state;
}

std::size_t count_ready(const std::vector<fleet_member>& fleet) {
  return static_cast<std::size_t>(std::count_if(
      fleet.begin(), fleet.end(), [](const auto& one) { return one.now() && one.now()->ready; }));
}

class fleet_table {
public:
  /// Adds a row. `numbers` is null for a daemon or model whose numbers are unknown.
  void add_row(const std::string& label, const std::string& state, const std::string& model,
               const fleet_numbers* numbers) {
    label_.cells.push_back(label);
    state_.cells.push_back(state);
    model_.cells.push_back(model);
    if (numbers == nullptr) {
      for (auto* column : {&running_, &waiting_, &cache_, &out_, &in_, &first_, &next_, &failed_,
                           &ended_, &cached_})
        column->cells.emplace_back();
      cache_.short_cells.emplace_back();
      return;
    }
    const auto& all = numbers->since_start;
    const auto& grown = numbers->grown;
    const double used = share(all.kv_used_blocks, all.kv_blocks);
    running_.cells.push_back(whole(all.running));
    waiting_.cells.push_back(whole(all.waiting));
    cache_.cells.push_back(bar_of(used));
    cache_.short_cells.push_back(shown("%.0f %%", 100 * used));
    out_.cells.push_back(whole(numbers->out_s));
    in_.cells.push_back(whole(numbers->in_s));
    first_.cells.push_back(whole(1000 * share(grown.first_token_s, grown.first_tokens)));
    next_.cells.push_back(shown("%.1f", 1000 * share(grown.between_s, grown.between)));
    failed_.cells.push_back(whole(all.failed));
    ended_.cells.push_back(whole(all.finished));
    cached_.cells.push_back(whole(100 * share(all.cached_tokens, all.looked_up_tokens)));
  }

  std::vector<std::string> fitted(std::size_t columns) const {
    return fit_table({label_, state_, model_, running_, waiting_, cache_, out_, in_, first_, next_,
                      failed_, ended_, cached_},
                     columns);
  }
  std::size_t rows() const { return label_.cells.size(); }

private:
  table_column label_{"DAEMON", "", {}, {}, true, true}, state_{"STATE", "", {}, {}, true},
      model_{"MODEL", "", {}, {}, true}, running_{"RUN"}, waiting_{"WAIT"},
      cache_{"KV CACHE", "KV"}, out_{"OUT/S"}, in_{"IN/S"}, first_{"FIRST ms", "FIRST"},
      next_{"NEXT ms", "NEXT"}, failed_{"FAILED"}, ended_{"ENDED"}, cached_{"CACHED %"};
};

/// The ids of all models of a daemon: those with numbers and those that are only listed.
std::set<std::string> models_of(const daemon_view& view) {
  std::set<std::string> ids;
  for (const auto& [id, load] : view.loads)
    ids.insert(id);
  for (const auto& model : view.models)
    ids.insert(model.id);
  return ids;
}

fleet_table table_of(const std::vector<fleet_member>& fleet,
                     const std::vector<std::string>& labels) {
  fleet_table table;
  fleet_numbers sum;
  for (std::size_t i = 0; i < fleet.size(); ++i) {
    const auto& member = fleet[i];
    const auto state = state_cell(member);
    const auto models = member.now() ? models_of(*member.now()) : std::set<std::string>();
    if (models.empty()) table.add_row(labels[i], state, "", nullptr);
    for (const auto& model : models) {
      if (!member.now()->loads.contains(model)) {
        table.add_row(labels[i], state, cell_of(model), nullptr);
        continue;
      }
      const auto numbers = numbers_of(member, model);
      sum.add(numbers);
      table.add_row(labels[i], state, cell_of(model), &numbers);
    }
  }
  table.add_row("all", std::to_string(count_ready(fleet)) + " ready", "", &sum);
  return table;
}

/// Removes rows from above the last row (the totals) until the table has at most `most` lines. A
/// line in their place says how many rows were removed.
void cut_rows(std::vector<std::string>& table, std::size_t rows, std::size_t most,
              std::size_t columns) {
  if (table.size() <= most || rows < 3) return;
  // one more, for the line that says how many are missing
  const auto out = std::min(table.size() - most + 1, rows - 1);
  const auto last = table.begin() + static_cast<std::ptrdiff_t>(rows);
  table.erase(last - static_cast<std::ptrdiff_t>(out), last);
  table.insert(table.begin() + static_cast<std::ptrdiff_t>(rows - out),
               wrap_line("... " + std::to_string(out) + " more rows", columns).front());
}

} // namespace

fleet_member::fleet_member(const endpoint& where) : address_(short_address(where)) {}

void fleet_member::take(daemon_view view) {
  before_ = std::exchange(now_, std::move(view));
  if (before_ && began_anew(*now_, *before_)) before_.reset();
  name_ = now_->name;
  standing_ = standing::answers;
  trouble_ = now_->why_not;
}

void fleet_member::lose(std::string why, standing how) {
  now_.reset();
  before_.reset();
  standing_ = how;
  trouble_ = std::move(why);
}

bool began_anew(const daemon_view& now, const daemon_view& before) {
  for (const auto& [id, load] : now.loads) {
    const auto old = before.loads.find(id);
    if (old == before.loads.end()) continue;
    for (const auto counter : counters)
      if (load.*counter < old->second.*counter) return true;
  }
  std::map<std::string_view, std::int64_t> loaded;
  for (const auto& old : before.models)
    loaded.emplace(old.id, old.created_unix_s);
  return std::any_of(now.models.begin(), now.models.end(), [&](const model_view& model) {
    const auto old = loaded.find(model.id);
    return old != loaded.end() && old->second != model.created_unix_s;
  });
}

std::string short_address(const endpoint& where) {
  const auto url = where.url() + where.prefix;
  constexpr std::string_view usual = "http://";
  return url.starts_with(usual) ? url.substr(usual.size()) : url;
}

std::string fleet_text(const std::vector<fleet_member>& fleet, std::size_t columns,
                       std::size_t lines) {
  const auto labels = labels_of(fleet);
  auto all = wrap_line("twill top  " + std::to_string(fleet.size()) + " daemons, " +
                           std::to_string(count_ready(fleet)) + " ready",
                       columns);
  all.emplace_back();
  std::vector<std::string> notes;
  for (std::size_t i = 0; i < fleet.size(); ++i) {
    if (fleet[i].trouble().empty()) continue;
    for (auto& line :
         wrap_line(labels[i] + ": " + cell_of(fleet[i].trouble(), longest_note), columns))
      notes.push_back(std::move(line));
  }
  if (!notes.empty()) notes.emplace(notes.begin());
  const auto made = table_of(fleet, labels);
  auto table = made.fitted(columns);
  const auto others = all.size() + notes.size();
  if (lines > 0) cut_rows(table, made.rows(), lines > others ? lines - others : 0, columns);
  all.insert(all.end(), table.begin(), table.end());
  all.insert(all.end(), notes.begin(), notes.end());
  if (lines > 0 && all.size() > lines) all.resize(lines);
  std::string out;
  for (const auto& line : all)
    out += line + "\n";
  return out;
}

} // namespace twill::tools
