#include "models/checkpoint/quant/checkpoint.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "models/checkpoint/quant/parts.hpp"
#include "models/checkpoint/quant/source.hpp"
#include "models/checkpoint/quoted.hpp"

namespace twill::models::quant {
namespace {

constexpr std::string_view codes_suffix = ".qweight";

std::vector<std::string> packed_stems(const tensor_table& table) {
  std::vector<std::string> stems;
  for (const tensor_info& t : table.tensors())
    if (t.name.ends_with(codes_suffix))
      stems.push_back(t.name.substr(0, t.name.size() - codes_suffix.size()));
  return stems;
}

bool all_zero(const tensor_table& table, const std::string& name) {
  const stored_tensor* t = table.peek(name);
  if (t == nullptr || !t->element->is_weight) return false;
  auto values = table.vector(name);
  return values.ok() &&
         std::all_of(values.value().begin(), values.value().end(), [](float x) { return x == 0; });
}

class quantised final : public checkpoint {
public:
  quantised(std::shared_ptr<const tensor_table> table, quant_config config)
      : table_(std::move(table)), config_(config) {}

  result<nothing> prepare(const std::vector<std::string>& stems) {
    std::set<std::string> hidden;
    for (const std::string& stem : stems) {
      auto measured = measure(*table_, config_, stem);
      if (!measured.ok()) return measured.error();
      tensor_info info{
          stem + ".weight", {measured.value().rows, measured.value().cols}, config_.name(), 0};
      if (table_->peek(info.name) != nullptr)
        return failure{errc::bad_format, "tensor " + quoted_name(info.name) + " is there beside " +
                                             quoted_name(stem + std::string(codes_suffix))};
      for (const std::string& name : part_names(stem)) {
        hidden.insert(name);
        if (const stored_tensor* part = table_->peek(name)) info.bytes += part->info.bytes;
      }
      if (all_zero(*table_, stem + ".bias")) hidden.insert(stem + ".bias");
      matrices_.emplace(info.name, matrix_entry{stem, shown_.size()});
      shown_.push_back(std::move(info));
    }
    for (tensor_info& t : table_->tensors())
      if (hidden.find(t.name) == hidden.end()) {
        others_.insert(t.name);
        shown_.push_back(std::move(t));
      }
    return nothing{};
  }

  std::vector<tensor_info> tensors() const override { return shown_; }

  const tensor_info* find(std::string_view name) const override {
    if (const matrix_entry* packed = find_packed(name)) return &shown_[packed->shown];
    return others_.find(name) == others_.end() ? nullptr : table_->find(name);
  }

  bool lists(std::string_view name) const override {
    return find(name) != nullptr || table_->lists(name);
  }

  result<gpu::weight_source> matrix(std::string_view name) const override {
    const matrix_entry* packed = find_packed(name);
    if (packed == nullptr) {
      if (auto shown = require(name); !shown.ok()) return shown.error();
      return table_->matrix(name);
    }
    auto parts = find_parts(*table_, config_, packed->stem);
    if (!parts.ok()) return parts.error();
    return make_source(std::move(parts).value(), config_);
  }

  result<std::vector<float>> vector(std::string_view name) const override {
    if (find_packed(name) != nullptr)
      return failure{errc::bad_tensor, "tensor " + quoted_name(name) + " is a packed matrix"};
    if (auto shown = require(name); !shown.ok()) return shown.error();
    return table_->vector(name);
  }

  void read_ahead(std::string_view name) const override {
    const matrix_entry* packed = find_packed(name);
    if (packed == nullptr) return table_->read_ahead(name);
    for (const std::string& part : part_names(packed->stem))
      table_->read_ahead(part);
  }

  void release(std::string_view name) const override {
    const matrix_entry* packed = find_packed(name);
    if (packed == nullptr) return table_->release(name);
    for (const std::string& part : part_names(packed->stem))
      table_->release(part);
  }

private:
  struct matrix_entry {
    std::string stem;
    std::size_t shown; ///< an index into shown_
  };

  const matrix_entry* find_packed(std::string_view name) const {
    const auto it = matrices_.find(name);
    return it == matrices_.end() ? nullptr : &it->second;
  }

  result<nothing> require(std::string_view name) const {
    if (others_.find(name) != others_.end()) return nothing{};
    return failure{errc::missing_tensor,
                   "tensor " + quoted_name(name) + " is not in the checkpoint"};
  }

  std::shared_ptr<const tensor_table> table_;
  quant_config config_;
  std::vector<tensor_info> shown_;
  std::map<std::string, matrix_entry, std::less<>> matrices_; ///< key: the name "x.weight"
  std::set<std::string, std::less<>> others_;
};

} // namespace

result<std::shared_ptr<const checkpoint>>
show_as_matrices(std::shared_ptr<const tensor_table> table,
                 const std::optional<quant_config>& config) {
  const std::vector<std::string> stems = packed_stems(*table);
  if (stems.empty() && config)
    return failure{errc::bad_metadata, "the configuration says " + config->name() +
                                           ", but there is no packed tensor (`x.qweight`)"};
  if (stems.empty()) return std::shared_ptr<const checkpoint>(std::move(table));
  if (!config)
    return failure{errc::bad_metadata, "tensor " +
                                           quoted_name(stems.front() + std::string(codes_suffix)) +
                                           " is packed, but no configuration says how"};
  const auto shown = std::make_shared<quantised>(std::move(table), *config);
  if (auto prepared = shown->prepare(stems); !prepared.ok()) return prepared.error();
  return std::shared_ptr<const checkpoint>(shown);
}

} // namespace twill::models::quant
