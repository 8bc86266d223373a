#include "tools/twilld/keys_file.hpp"

namespace twill::tools {

result<std::vector<config::tenant_options>, file_errc>
read_keys_file(const config::options& options, const file_reader& read) {
  const auto& file = options.server.keys_file;
  if (file.empty()) return options.tenants;
  const auto text = read(file);
  if (!text.ok())
    return failure{file_errc::unreadable, "`server.keys_file` must be readable: " + text.detail()};
  auto tenants = config::add_keys(options.tenants, text.value(), file);
  if (!tenants.ok()) return failure{file_errc::unreadable, tenants.detail()};
  return std::move(tenants).value();
}

} // namespace twill::tools
