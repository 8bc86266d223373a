#include "net/protocol/codec.hpp"

#include <chrono>

#include "net/random_id.hpp"

namespace twill::net {

reply_identity make_identity(std::string_view id_prefix, const codec_context& context) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {make_id(id_prefix, context.server_name), context.model.id,
          std::chrono::duration_cast<std::chrono::seconds>(now).count()};
}

} // namespace twill::net
