// loop_object: the `loop` variable of a running for loop.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/jinja/evaluator.hpp"

namespace twill::models::jinja {

class loop_object final : public object {
public:
  loop_object(evaluator& ev, const stmt& loop, scope& outer, std::vector<val> items, int depth)
      : ev_(ev), loop_(loop), outer_(outer), items_(std::move(items)), depth_(depth) {}

  std::string type_name() const override { return "LoopContext"; }
  std::optional<val> attribute(std::string_view name) const override;
  bool callable() const override { return loop_.flag; }
  /// `loop(items)` of a recursive loop.
  val call(runtime& rt, call_args& args) override;

  std::size_t size() const { return items_.size(); }
  const val& item() const { return items_[index_]; }
  void move_to(std::size_t index) { index_ = index; }
  void end() { ended_ = true; }

  val cycle(const call_args& args) const;
  bool changed(const call_args& args);

private:
  evaluator& ev_;
  const stmt& loop_;
  scope& outer_;
  std::vector<val> items_;
  std::optional<std::vector<val>> last_changed_;
  std::size_t index_ = 0;
  int depth_;
  bool ended_ = false; ///< true once its scopes may be gone
};

} // namespace twill::models::jinja
