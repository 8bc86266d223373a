// generate_reply: the reply of TGI's /generate and /generate_stream. Used on its session's strand.
//
// The texts of tokens contain only whole characters: if several tokens make up one character, the
// last of these tokens has the whole character. Log-probabilities are those of the model, before
// temperature and other changes of the distribution.
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
  std::int32_t top_tokens = 0;       ///< alternatives to list for each token
  std::int32_t best_of = 1;          ///< choices to generate; the most likely is the reply
  std::optional<std::uint64_t> seed; ///< the seed, if tokens are sampled with it
  std::string prefix;                ///< the prompt, if the reply's text begins with it
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
    std::vector<shown_token> tokens; ///< kept only if the request asked for details
    std::int32_t n_tokens = 0;
    double logprobs = 0; ///< sum over all tokens
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
  std::int32_t index_ = 0; ///< index of the stream's last event
};

} // namespace twill::net
