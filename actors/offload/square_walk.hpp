// square_walk: walks the squares of a schedule on the device: one micro-batch through one layer
// after another, and all that passed the last layer through the head. A square's `layer` is a stage
// of the decoder: a layer, or half of one.
//
// One thread, the device's; one use. Owns the micro-batches' activations and the KV that travels.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "actors/offload/block_batch.hpp"
#include "actors/offload/block_walk.hpp"
#include "actors/offload/greedy_draw.hpp"

namespace twill::actors {

class square_walk {
public:
  square_walk(gpu::device& dev, models::decoder& decoder, const models::decoder_options& loaded,
              const std::vector<block_prompt>& prompts, const block_options& options)
      : dev_(dev), decoder_(decoder), loaded_(loaded), prompts_(prompts), options_(options),
        blocks_(loaded.n_blocks), cursor_(shape_of(prompts, options, decoder.n_stages())) {
    report_.outputs.resize(prompts.size());
    for (const block_prompt& p : prompts)
      total_tokens_ += static_cast<std::int64_t>(p.ids.size()) + p.max_new;
  }

  result<nothing> prepare(const block_needs& needs);
  block_report run();

private:
  /// A forward step of some of a micro-batch's rows, with activations of its own.
  struct piece {
    block_step step;
    models::micro_batch* at = nullptr;
  };

  struct member {
    std::vector<block_sequence> sequences;
    std::vector<piece> pieces; ///< of the round under way
    std::unique_ptr<models::micro_batch> decode_rows;
    bool prefill = true;     ///< the round under way computes its prompt
    std::int64_t round = 0;  ///< the last one it took part in
    std::int32_t passed = 0; ///< stages of that round that it is through
    std::int32_t place = -1; ///< among those alive, for KV that travels
    staged_ranges staged;    ///< of the round under way
  };

  result<nothing> begin(member& m, std::int32_t batch, std::int32_t token);
  result<nothing> build_pieces(member& m);
  result<nothing> run_pieces(member& m, std::int32_t stage);
  result<nothing> bring_hidden(member& m, std::size_t piece, bool anew);
  void rest_hidden(member& m, std::size_t piece, bool dropped);
  void load_ahead();
  void load_hidden_ahead();
  std::int64_t hidden_bytes(const piece& p) const;
  result<nothing> enter(std::int32_t stage);
  void leave();
  result<nothing> run_square(const square& at);
  result<nothing> end_round();
  result<nothing> score_group(std::span<const piece* const> group);
  void end_member(std::int32_t batch);
  void expect_tokens();
  void book(bool prefill);
  struct traffic {
    double seconds = 0; ///< see block_round::moving_seconds
    std::int64_t bytes = 0;
  };
  traffic moved() const; ///< so far
  bool asked_to_stop() const { return options_.stop && options_.stop(); }

  gpu::device& dev_;
  models::decoder& decoder_;
  const models::decoder_options& loaded_;
  const std::vector<block_prompt>& prompts_;
  const block_options& options_;
  block_list blocks_;
  schedule_cursor cursor_;
  block_report report_;
  std::optional<greedy_draw> draw_;
  std::map<std::int32_t, member> members_;
  std::vector<std::unique_ptr<models::micro_batch>> prefill_rows_; ///< free ones
  std::vector<std::unique_ptr<models::micro_batch>> prefill_rows_used_;
  std::vector<std::unique_ptr<models::micro_batch>> decode_rows_; ///< free ones
  std::vector<std::int32_t> round_; ///< micro-batches of the round, in order
  std::size_t finished_ = 0;        ///< of them, how many passed the last stage
  std::int32_t stage_ = -1;         ///< entered
  std::vector<std::int32_t> free_places_;
  std::unique_ptr<models::offload::kv_stream> kv_; ///< null: all KV is in the arena
  std::int32_t kv_buffers_ = 0;
  image_numbers images_;
  std::unique_ptr<models::offload::hidden_stream>
      hidden_; ///< null: pieces have memory of their own
  std::int32_t hidden_buffers_ = 0;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  double booked_ = 0, booked_decode_ = 0; ///< before the round under way
  traffic booked_moved_;                  ///< the same
  std::int64_t total_tokens_ = 0;
};

} // namespace twill::actors
