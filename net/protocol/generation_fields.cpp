#include "net/protocol/generation_fields.hpp"

#include "net/protocol/output_form.hpp"
#include "net/protocol/sampling_fields.hpp"

namespace twill::net {

void set_defaults(const codec_context& context, actors::request& to) {
  to.model = context.model.id;
  to.sampling = context.model.default_sampling;
  const std::int32_t most = context.limits.default_max_tokens;
  to.sampling.max_tokens = most > 0 ? most : -1;
}

void read_generation(fields& from, const codec_context& context,
                     std::initializer_list<std::string_view> limits, std::int32_t least,
                     actors::request& to) {
  read_sampling(from, to.sampling);
  read_token_limit(from, limits, least, to.sampling);
  read_prompt_options(from, context, to);
  read_queue_fields(from, to);
  read_output_form(from, to);
  reject_unsupported(from);
}

} // namespace twill::net
