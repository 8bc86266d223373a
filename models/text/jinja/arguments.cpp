#include "models/text/jinja/arguments.hpp"

#include <algorithm>

namespace twill::models::jinja {

arguments::arguments(runtime& rt, std::string_view function, const call_args& args,
                     std::initializer_list<const char*> names, std::size_t required)
    : rt_(rt), function_(function), names_(names), bound_(names.size(), nullptr) {
  const std::string name(function);
  if (args.positional.size() > names_.size())
    rt.fail(name + "() takes at most " + std::to_string(names_.size()) + " arguments, given " +
            std::to_string(args.positional.size()));
  for (std::size_t i = 0; i < args.positional.size(); ++i)
    bound_[i] = &args.positional[i];
  for (const auto& [key, argument] : args.named) {
    const auto it = std::find(names_.begin(), names_.end(), key);
    if (it == names_.end()) rt.fail(name + "() has no argument '" + key + "'");
    const val*& place = bound_[static_cast<std::size_t>(it - names_.begin())];
    if (place != nullptr) rt.fail(name + "() is given '" + key + "' twice");
    place = &argument;
  }
  for (std::size_t i = 0; i < required; ++i)
    if (bound_[i] == nullptr) rt.fail(name + "() needs " + describe(i));
}

std::string arguments::describe(std::size_t i) const {
  return "argument '" + std::string(names_[i]) + "'";
}

std::int64_t arguments::whole(std::size_t i, std::int64_t otherwise) const {
  if (bound_[i] == nullptr) return otherwise;
  const auto n = bound_[i]->whole();
  if (!n)
    rt_.fail(std::string(function_) + "(), " + describe(i) + " must be an integer, given " +
             type_name(*bound_[i]));
  return *n;
}

bool arguments::flag(std::size_t i, bool otherwise) const {
  return bound_[i] == nullptr ? otherwise : truthy(*bound_[i]);
}

const text* arguments::string(std::size_t i) const {
  if (bound_[i] == nullptr || bound_[i]->is_none()) return nullptr;
  const text* t = bound_[i]->as_text();
  if (t == nullptr)
    rt_.fail(std::string(function_) + "(), " + describe(i) + " must be a string, given " +
             type_name(*bound_[i]));
  return t;
}

} // namespace twill::models::jinja
