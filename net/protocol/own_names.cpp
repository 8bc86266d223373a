#include "net/protocol/own_names.hpp"

#include <algorithm>

namespace twill::net {

std::string with_own_names(std::string_view message, field_names names) {
  std::string out;
  while (true) {
    const auto begin = message.find('`');
    const auto end = begin == std::string_view::npos ? begin : message.find('`', begin + 1);
    if (end == std::string_view::npos) return out += message;
    const auto name = message.substr(begin + 1, end - begin - 1);
    const auto found = std::find_if(names.begin(), names.end(),
                                    [&](const auto& pair) { return pair.first == name; });
    out += message.substr(0, begin + 1);
    out += found == names.end() ? name : found->second;
    out += '`';
    message.remove_prefix(end + 1);
  }
}

} // namespace twill::net
