// A blocking socket client for tests. It sends raw bytes and hand-made WebSocket frames, and reads
// HTTP replies, so that tests can send what no proper client would. Every wait is bounded. POSIX
// sockets only.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace twill::testing {

struct http_result {
  int status = 0;
  std::map<std::string, std::string> headers; ///< names in lower case
  std::string body;                           ///< chunks joined
  /// Empty when absent.
  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string() : found->second;
  }
};

struct ws_frame {
  bool fin = true;
  int opcode = 1;
  std::string payload;
  std::uint16_t close_code() const;
};

class client {
public:
  explicit client(std::uint16_t port, int receive_buffer_bytes = 0);
  virtual ~client();
  client(const client&) = delete;
  client& operator=(const client&) = delete;

  void send(std::string_view bytes); ///< throws when the peer has closed
  virtual bool try_send(std::string_view bytes);
  void close();
  void reset(); ///< closes with RST
  void shutdown_send();

  /// Reads until `mark` is in what was read; throws on time-out or close.
  std::string read_until(std::string_view mark,
                         std::chrono::milliseconds within = std::chrono::seconds(5));
  /// One HTTP reply, whole.
  http_result read_reply(bool head_only = false);
  http_result get(const std::string& path, const std::string& headers = "");
  http_result post(const std::string& path, const std::string& body,
                   const std::string& headers = "");
  /// The bytes that were read and not taken yet.
  std::string rest() { return std::exchange(in_, {}); }
  /// True when the peer closes within the time-out (bytes that come before are dropped).
  bool closed_within(std::chrono::milliseconds within);

  int upgrade(const std::string& path, const std::string& headers = ""); ///< the status
  void send_frame(std::string_view payload, int opcode = 1, bool fin = true);
  ws_frame read_frame();   ///< control frames included
  std::string read_text(); ///< the next text message
  void join_close();       ///< answers a close frame

protected:
  /// Adds what the socket has to `to`; false on close.
  bool receive(std::string& to, std::chrono::milliseconds within);
  /// Adds to what was read; false on close.
  virtual bool fill(std::chrono::milliseconds within) { return receive(in_, within); }

  std::string in_;

private:
  std::string take(std::size_t n);

  int fd_ = -1;
};

std::string post_text(const std::string& path, const std::string& body,
                      const std::string& headers = "");

} // namespace twill::testing
