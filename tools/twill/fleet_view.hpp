// fleet_view: several daemons in one table, with their sum. Pure; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tools/twill/daemon_view.hpp"

namespace twill::tools {

/// One daemon of the fleet, and what the last looks at it found.
class fleet_member {
public:
  enum class standing { not_asked, answers, no_answer, other_server };

  explicit fleet_member(const endpoint& where);

  /// A look that found it. Counters that began anew since the look before make no rates.
  void take(daemon_view view);
  /// A look that failed. What was seen before it counts no more.
  void lose(std::string why, standing how = standing::no_answer);

  const std::string& address() const { return address_; }
  /// `server.name` as it was last given; empty: none.
  const std::string& name() const { return name_; }
  standing now_standing() const { return standing_; }
  /// Why the last look failed, or what the daemon says against itself.
  const std::string& trouble() const { return trouble_; }
  const std::optional<daemon_view>& now() const { return now_; }
  /// An earlier look whose counters may be compared with those of now().
  const std::optional<daemon_view>& before() const { return before_; }

private:
  std::string address_, name_, trouble_;
  standing standing_ = standing::not_asked;
  std::optional<daemon_view> now_, before_;
};

/// Whether the counters of `now` may not be compared with those of `before`: the daemon or one of
/// its models was started between the two.
bool began_anew(const daemon_view& now, const daemon_view& before);

/// How a fleet's table names a daemon that gives no name: without "http://".
std::string short_address(const endpoint& where);

/// A heading, a table with one row for each daemon and model and a last one for all that answer,
/// and what is to be said about daemons that are not ready. No line is longer than `columns`, and
/// there are at most `lines` where the fleet has more rows (0: any number).
std::string fleet_text(const std::vector<fleet_member>& fleet, std::size_t columns,
                       std::size_t lines);

} // namespace twill::tools
