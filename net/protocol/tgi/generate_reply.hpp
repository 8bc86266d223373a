// generate_reply: what TGI's /generate and /generate_stream answer. On its session's strand.
//
// Tokens have their texts in whole characters: the token that completes a character has all of it.
// Log-probabilities are the model's own, before temperature and what else shapes the distribution.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/protocol/codec.hpp"
#include "net/protocol/json/json_writer.hpp"
#include "net/protocol/output_json.hpp"
#include "net/protocol/whole_characters.hpp"

namespace twill::net {

struct generate_options {
  bool stream = false;
  bool in_list = false; ///< a whole reply is a list with one object
  bool details = false;
  std::int32_t top_tokens = 0;       ///< alternatives of each token
  std::int32_t best_of = 1;          ///< choices, of which the reply is the likeliest
  std::optional<std::uint64_t> seed; ///< where tokens are drawn by it
  std::string prefix;                ///< the prompt, where the text begins with it
};

class generate_reply final : public reply_encoder {
public:
  explicit generate_reply(generate_options options);

  void on_event(std::size_t request, actors::event&& ev, std::string& out) override;
  void on_end(std::string& out) override;
  void on_error(const api_error& error, std::string& out) override;

private:
  struct shown_token {
    actors::token_output output;
    std::string text;
  };
  struct sequence {
    std::string text;
    whole_characters characters;
    std::vector<shown_token> tokens; ///< where details want them
    std::int32_t n_tokens = 0;
    double logprobs = 0; ///< of all tokens together
    std::string_view finish = "length";
    double mean_logprob() const;
  };

  shown_token take_token(sequence& of, actors::token_output&& token, bool last) const;
  void add_chunk(const shown_token& token, const sequence* ended, std::string& out);
  void add_seed(json_writer& json) const;
  void add_prefill(json_writer& json) const;
  void add_tokens(json_writer& json, const sequence& of) const;
  void add_sequence(json_writer& json, const sequence& of) const;
  std::size_t likeliest() const;

  generate_options options_;
  std::vector<sequence> sequences_;
  std::vector<actors::token_output> prefill_;
  usage_tally tally_;
  std::int32_t index_ = 0; ///< of the last event of a stream
};

} // namespace twill::net
