// text_port: the tokenizer calls of an engine_port, for the model that the caller names. They run
// on the caller's thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/detail/served_model.hpp"
#include "actors/port/engine_port.hpp"

namespace twill::actors {

class text_port : public engine_port {
public:
  result<std::vector<std::int32_t>> tokenize(const std::string& model, const text_prompt& text,
                                             bool parse_special) const final;
  result<std::vector<std::int32_t>> tokenize_chat(const std::string& model,
                                                  const chat_prompt& chat) const final;
  result<std::string> render_chat(const std::string& model, const chat_prompt& chat) const final;
  result<std::string> detokenize(const std::string& model,
                                 const std::vector<std::int32_t>& ids) const final;
  result<std::vector<token_piece>> pieces(const std::string& model,
                                          const std::vector<std::int32_t>& ids) const final;
  result<tokenizer_info> describe_tokenizer(const std::string& model) const final;

private:
  /// Returns the model with this id; an empty id means the default model. Never null.
  virtual result<served_model_ptr> text_model(const std::string& id) const = 0;
};

} // namespace twill::actors
