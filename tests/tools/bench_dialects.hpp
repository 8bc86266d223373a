// bench_dialects: pure functions that write a scripted reply in the format of each kind of server
// that twill-bench can measure.
#pragma once

#include <string>

namespace twill::tests {

constexpr int prompt_tokens = 7; ///< prompt tokens in every usage report

/// The timing and the content of one generation.
struct script {
  int first_ms = 0; ///< from request to the first chunk
  int gap_ms = 0;   ///< between chunks
  int end_ms = 0;   ///< from the last chunk to the end mark, where that is an event of its own
  int n_chunks = 4;
  int after_requests = 0; ///< the first chunk also waits until so many requests have come
  int tokens_per_chunk = 1;
  int status = 200;     ///< anything else: an error reply at once
  int cut_after = -1;   ///< chunks after which the connection is closed hard
  int error_after = -1; ///< chunks after which an error event ends the stream
  bool end_mark = true; ///< finish reason, usage and [DONE]
  bool usage = true;
  bool empty_opening = false; ///< chat: the role first, without content
  std::string finish = "length";
  std::string text = "ab"; ///< text of every chunk, escaped for JSON
};

/// Writes the events of a reply in the format of the server whose default path is `target`: as
/// server-sent events, or as WebSocket frames that contain `lane` as the id of the request.
struct dialect {
  std::string target, lane;

  bool websocket() const { return target == "/v1/stream" || target == "/v1/responses"; }
  /// The first event of a chat, which has the role and no content.
  std::string opening() const;
  /// Chunk number i. Where a backend's end mark is part of the last chunk, that chunk includes it.
  std::string chunk(const script& s, int i) const;
  std::string end(const script& s) const; ///< may be several events, or nothing
  std::string error() const;
  std::string whole(const script& s) const;
};

} // namespace twill::tests
