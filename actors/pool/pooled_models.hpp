// pooled_models: the models of a pool: what is known of each model, its open files, its engine if
// it has one, and what engine_port::models() reports of it.
//
// Thread safety: none; the pool's mutex guards it. pool_state decides which model has memory.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/detail/stats_board.hpp"
#include "actors/engine.hpp"
#include "actors/pool/pool_parts.hpp"
#include "actors/pool/pool_state.hpp"
#include "config/options.hpp"

namespace twill::actors {

class pooled_models {
public:
  explicit pooled_models(const std::vector<config::shared_model_options>& configured);

  std::size_t size() const { return all_.size(); }
  const std::string& id(std::size_t m) const { return all_[m].info.id; }
  /// Finds a model by id or alias; the first model if `name` is empty.
  std::optional<std::size_t> find(const std::string& name) const;
  /// Finds a model by id, alias or the name of its configuration table.
  std::optional<std::size_t> find_for_order(const std::string& name) const;
  failure<errc> unknown(const std::string& name) const;

  /// Null while the model's files are not open.
  const std::shared_ptr<const opened_model>& files(std::size_t m) const { return all_[m].files; }
  void take_files(std::size_t m, opened_model opened);
  std::shared_ptr<const opened_model> give_up_files(std::size_t m);

  /// Null while the model has no engine.
  engine* running(std::size_t m) const { return all_[m].running.get(); }
  engine_port& port(std::size_t m) const { return all_[m].running->port(); }
  void take_engine(std::size_t m, std::unique_ptr<engine> started);
  /// Takes the engine out; its counters are kept.
  std::unique_ptr<engine> give_up_engine(std::size_t m);
  void end_engines();

  engine_state state(const pool_state& memory) const;
  std::string state_detail(const pool_state& memory) const;
  /// Which model's engine has lost the device, and why; empty if no existing engine has.
  std::string lost_detail() const;
  /// `sampling` is the configuration for all models.
  model_info describe(std::size_t m, const pool_state& memory,
                      const config::sampling_options& sampling) const;
  std::vector<model_stats> stats(const pool_state& memory) const;
  std::vector<tenant_stats> tenants() const;
  result<served_model_ptr> text(const std::string& name, const pool_state& memory) const;

private:
  struct one {
    std::string table; ///< name of its table in the configuration
    /// filled when its files are first opened; sampling values are those of the files
    model_info info;
    std::shared_ptr<const opened_model> files;
    /// set while the model is awake, and until its memory is released
    std::unique_ptr<engine> running;
    // Counters of its past engines:
    engine_stats past = stats_board().read();
    std::vector<tenant_stats> past_tenants;
  };

  std::vector<one> all_;
};

} // namespace twill::actors
