#include "models/text/jinja/loop_object.hpp"

#include <cstdint>
#include <utility>

#include "models/text/jinja/methods.hpp"

namespace twill::models::jinja {
namespace {

val number(std::size_t n) {
  return val(static_cast<std::int64_t>(n));
}

loop_object& self_loop(const val& self) {
  return static_cast<loop_object&>(*self.as_object());
}

val cycle_method(runtime& rt, const val& self, const call_args& args) {
  if (args.positional.empty()) rt.fail("no items for cycling given");
  return self_loop(self).cycle(args);
}

val changed_method(runtime&, const val& self, const call_args& args) {
  return val(self_loop(self).changed(args));
}

} // namespace

std::optional<val> loop_object::attribute(std::string_view name) const {
  const std::size_t n = items_.size();
  if (name == "index") return number(index_ + 1);
  if (name == "index0") return number(index_);
  if (name == "revindex") return number(n - index_);
  if (name == "revindex0") return number(n - index_ - 1);
  if (name == "first") return val(index_ == 0);
  if (name == "last") return val(index_ + 1 == n);
  if (name == "length") return number(n);
  if (name == "depth") return val(std::int64_t{depth_} + 1);
  if (name == "depth0") return val(std::int64_t{depth_});
  if (name == "previtem")
    return index_ > 0 ? items_[index_ - 1] : runtime::undefined("there is no previous item");
  if (name == "nextitem")
    return index_ + 1 < n ? items_[index_ + 1] : runtime::undefined("there is no next item");
  const method_fn method = name == "cycle"     ? cycle_method
                           : name == "changed" ? changed_method
                                               : method_fn{nullptr};
  if (method == nullptr) return std::nullopt;
  const val self(const_cast<loop_object*>(this));
  return val(ev_.rt().make_object<bound_method>(self, method, std::string(name)));
}

val loop_object::call(runtime& rt, call_args& args) {
  if (!loop_.flag) rt.fail("the loop is not marked 'recursive'");
  if (ended_) rt.fail("the loop has ended");
  if (args.positional.size() != 1 || !args.named.empty())
    rt.fail("loop() takes exactly one argument");
  return ev_.call_loop(loop_, outer_, args.positional[0], depth_ + 1);
}

val loop_object::cycle(const call_args& args) const {
  return args.positional[index_ % args.positional.size()];
}

bool loop_object::changed(const call_args& args) {
  bool same = last_changed_ && last_changed_->size() == args.positional.size();
  for (std::size_t i = 0; same && i < args.positional.size(); ++i)
    same = equal((*last_changed_)[i], args.positional[i]);
  last_changed_ = args.positional;
  return !same;
}

} // namespace twill::models::jinja
