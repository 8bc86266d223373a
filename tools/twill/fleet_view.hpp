// fleet_view: shows several daemons in one table, with a row of totals. The functions are pure; any
// thread may call them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tools/twill/daemon_view.hpp"

namespace twill::tools {

/// One daemon of the fleet and the results of its latest queries.
class fleet_member {
public:
  enum class standing { not_asked, answers, no_answer, other_server };

  explicit fleet_member(const endpoint& where);

  /// Records a successful query. If the daemon or one of its models was restarted since the
  /// previous query, before() returns nothing, so that no rates are computed across the restart.
  void take(daemon_view view);
  /// Records a failed query. The results of earlier queries are dropped.
  void lose(std::string why, standing how = standing::no_answer);

  const std::string& address() const { return address_; }
  /// `server.name` as the daemon last reported it; empty: none.
  const std::string& name() const { return name_; }
  standing now_standing() const { return standing_; }
  /// Why the last query failed, or why the daemon reports that it is not ready.
  const std::string& trouble() const { return trouble_; }
  const std::optional<daemon_view>& now() const { return now_; }
  /// The query before now(), if the counters of the two can be compared.
  const std::optional<daemon_view>& before() const { return before_; }

private:
  std::string address_, name_, trouble_;
  standing standing_ = standing::not_asked;
  std::optional<daemon_view> now_, before_;
};

/// Whether the daemon or one of its models was restarted between `before` and `now`, so that the
/// counters of the two cannot be compared.
bool began_anew(const daemon_view& now, const daemon_view& before);

/// The label in the fleet's table for a daemon without a name: its address without "http://".
std::string short_address(const endpoint& where);

/// Returns a heading, a table with one row per daemon and model and a last row of totals, and notes
/// about daemons that are not ready. No line is longer than `columns`. When the text would have
/// more than `lines` lines, rows of the table are left out (0: no limit).
std::string fleet_text(const std::vector<fleet_member>& fleet, std::size_t columns,
                       std::size_t lines);

} // namespace twill::tools
