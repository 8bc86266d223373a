// stored_script: a sequence of calls to a stored_folder (the files of stored responses), and what
// the folder must hold after each call.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <system_error>
#include <vector>

#include "net/stored/stored_folder.hpp"
#include "tests/net/stored/stored_support.hpp"

namespace twill::testing {

/// What a folder holds.
struct stored_state {
  std::map<std::string, net::stored_bytes> running;
  std::map<std::string, net::stored_bytes> over;
  friend bool operator==(const stored_state&, const stored_state&) = default;
};

/// The state as text, for the messages of failed checks.
std::string describe(const stored_state& state);

/// One call of a stored_folder.
struct stored_call {
  enum class operation { step, finish, forget, erase, tidy };
  operation kind = operation::tidy;
  std::vector<std::string> begins;                          ///< the ids that a step begins
  std::vector<std::pair<std::string, std::string>> records; ///< the records of a step
  std::string id;                                           ///< the id of any other call

  std::string text() const;
};

/// Allowed calls over a few ids that occur again and again. Each seed gives another script.
std::vector<stored_call> random_script(std::uint32_t seed, int n_calls);

/// Makes calls and keeps the state that the folder must have.
class script_runner {
public:
  explicit script_runner(net::stored_folder& folder, stored_state state = {})
      : folder_(folder), state_(std::move(state)) {}

  /// The folder's state as it must be after a call.
  static stored_state after(const stored_state& before, const stored_call& call);
  /// Makes the call. The state changes if the call succeeds.
  std::error_code run(const stored_call& call);
  const stored_state& state() const { return state_; }

private:
  net::stored_folder& folder_;
  stored_state state_;
  std::chrono::steady_clock::time_point now_{};
};

/// The state of a folder that was opened. All ended responses are read.
stored_state state_of(const net::stored_folder& folder, const net::stored_folder::contents& found);

} // namespace twill::testing
