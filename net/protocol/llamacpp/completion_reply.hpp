// completion_reply: the reply of llama.cpp's /completion, streamed or whole. Used on its session's
// strand.
//
// Durations are measured between engine events. The time of a prompt is the time from the request
// to the first token.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "net/protocol/codec.hpp"
#include "net/protocol/json/json_writer.hpp"
#include "net/protocol/output_json.hpp"

namespace twill::net {

struct completion_options {
  bool stream = false;
  bool return_tokens = false; ///< adds token ids to a whole reply; a stream always has them
  bool timings_per_token = false;
  std::int32_t n_probs = 0;
  std::int32_t choices_per_prompt = 1;
  std::vector<std::string> response_fields; ///< members of a reply's last object; empty: all
  std::string model;
  std::vector<std::string> prompts; ///< texts of the prompts, which the reply repeats
  std::string settings;             ///< `generation_settings` as JSON
};

class completion_reply final : public reply_encoder {
public:
  explicit completion_reply(completion_options options);

  void on_event(std::size_t request, actors::event&& ev, std::string& out) override;
  void on_end(std::string& out) override;
  void on_error(const api_error& error, std::string& out) override;

private:
  using clock = std::chrono::steady_clock;
  struct output {
    std::size_t index = 0;
    std::size_t request = 0;
    std::string content;
    std::vector<actors::token_output> tokens;
    std::int32_t n_tokens = 0;
    bool has_new_line = false;
    std::string_view stop_type = "none";
    std::string stopping_word;
    clock::time_point first, last; ///< arrival times of the first and the last token
  };

  void take_event(output& to, actors::event& ev) const;
  void add_part(const output& of, const actors::event& ev, std::string& out) const;
  std::string final_object(const output& of) const;
  void add_timings(json_writer& json, const output& of) const;
  void add_probabilities(json_writer& json, std::span<const actors::token_output> tokens) const;

  completion_options options_;
  std::vector<output> outputs_;
  std::vector<usage_tally> tallies_; ///< one per request
  clock::time_point begun_ = clock::now();
};

} // namespace twill::net
