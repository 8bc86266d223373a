#include "tests/net/support/client.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cctype>
#include <cerrno>
#include <netinet/in.h>
#include <poll.h>
#include <stdexcept>
#include <sys/socket.h>
#include <unistd.h>

namespace twill::testing {

using std::chrono::milliseconds;

namespace {

/// False when it did not come in time. A signal, such as a fuzzer's alarm, does not end the wait.
bool wait_for(short what, int fd, milliseconds within) {
  const auto end = std::chrono::steady_clock::now() + within;
  for (;;) {
    pollfd waits{fd, what, 0};
    const int n = ::poll(&waits, 1, static_cast<int>(within.count()));
    if (n >= 0 || errno != EINTR) return n > 0;
    within =
        std::max(std::chrono::duration_cast<milliseconds>(end - std::chrono::steady_clock::now()),
                 milliseconds(0));
  }
}

/// Whether a connect() that a signal ended succeeds after all.
bool goes_on(int fd) {
  int error = errno;
  socklen_t size = sizeof error;
  return error == EINTR && wait_for(POLLOUT, fd, milliseconds(10'000)) &&
         ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

} // namespace

std::uint16_t ws_frame::close_code() const {
  if (payload.size() < 2) return 0;
  return static_cast<std::uint16_t>(static_cast<unsigned char>(payload[0]) << 8 |
                                    static_cast<unsigned char>(payload[1]));
}

client::client(std::uint16_t port, int receive_buffer_bytes) {
  fd_ = ::socket(AF_INET, SOCK_STREAM, 0);
  if (receive_buffer_bytes > 0)
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes, sizeof receive_buffer_bytes);
  const timeval limit{10, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0 && !goes_on(fd_))
    throw std::runtime_error("connect failed");
}

client::~client() {
  close();
}

void client::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void client::reset() {
  const linger now{1, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close();
}

void client::shutdown_send() {
  ::shutdown(fd_, SHUT_WR);
}

bool client::try_send(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

void client::send(std::string_view bytes) {
  if (!try_send(bytes)) throw std::runtime_error("send failed");
}

bool client::receive(std::string& to, milliseconds within) {
  if (!wait_for(POLLIN, fd_, within))
    throw std::runtime_error("nothing received in time; so far: " + in_.substr(0, 500));
  char bytes[65536];
  const auto n = ::recv(fd_, bytes, sizeof bytes, 0);
  if (n <= 0) return false;
  to.append(bytes, static_cast<std::size_t>(n));
  return true;
}

std::string client::take(std::size_t n) {
  while (in_.size() < n)
    if (!fill(milliseconds(5000)))
      throw std::runtime_error("closed; so far: " + in_.substr(0, 500));
  auto out = in_.substr(0, n);
  in_.erase(0, n);
  return out;
}

std::string client::read_until(std::string_view mark, milliseconds within) {
  const auto end = std::chrono::steady_clock::now() + within;
  std::size_t at;
  while ((at = in_.find(mark)) == std::string::npos) {
    if (std::chrono::steady_clock::now() > end) throw std::runtime_error("not received in time");
    if (!fill(within)) throw std::runtime_error("closed; so far: " + in_.substr(0, 500));
  }
  return take(at + mark.size());
}

http_result client::read_reply(bool head_only) {
  http_result out;
  const auto head = read_until("\r\n\r\n");
  out.status = std::stoi(head.substr(9, 3));
  std::size_t at = head.find("\r\n") + 2;
  while (at < head.size() - 2) {
    const auto end = head.find("\r\n", at);
    const auto line = head.substr(at, end - at);
    const auto colon = line.find(": ");
    std::string name = line.substr(0, colon);
    for (auto& c : name)
      c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    out.headers[name] = line.substr(colon + 2);
    at = end + 2;
  }
  if (head_only || out.status == 204 || out.status == 100 || out.status == 101) return out;
  if (out.headers.contains("content-length")) {
    out.body = take(std::stoul(out.header("content-length")));
  } else if (out.header("transfer-encoding") == "chunked") {
    for (;;) {
      const auto size = std::stoul(read_until("\r\n"), nullptr, 16);
      out.body += take(size);
      take(2);
      if (size == 0) break;
    }
  } else {
    while (fill(milliseconds(5000))) {
    }
    out.body = std::move(in_);
    in_.clear();
  }
  return out;
}

std::string post_text(const std::string& path, const std::string& body,
                      const std::string& headers) {
  return "POST " + path +
         " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
         headers + "\r\n" + body;
}

http_result client::get(const std::string& path, const std::string& headers) {
  send("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n");
  return read_reply();
}

http_result client::post(const std::string& path, const std::string& body,
                         const std::string& headers) {
  send(post_text(path, body, headers));
  return read_reply();
}

bool client::closed_within(milliseconds within) {
  const auto end = std::chrono::steady_clock::now() + within;
  try {
    for (;;) {
      const auto left =
          std::chrono::duration_cast<milliseconds>(end - std::chrono::steady_clock::now());
      if (left.count() <= 0) return false;
      if (!fill(left)) return true;
      in_.clear();
    }
  } catch (const std::runtime_error&) {
    return false;
  }
}

int client::upgrade(const std::string& path, const std::string& headers) {
  send("GET " + path +
       " HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
       "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
       headers + "\r\n");
  return read_reply().status;
}

void client::send_frame(std::string_view payload, int opcode, bool fin) {
  std::string frame;
  frame += static_cast<char>((fin ? 0x80 : 0) | opcode);
  if (payload.size() < 126) {
    frame += static_cast<char>(0x80 | payload.size());
  } else if (payload.size() < 65536) {
    frame += static_cast<char>(0x80 | 126);
    frame += static_cast<char>(payload.size() >> 8);
    frame += static_cast<char>(payload.size() & 255);
  } else {
    frame += static_cast<char>(0x80 | 127);
    for (int shift = 56; shift >= 0; shift -= 8)
      frame += static_cast<char>(static_cast<std::uint64_t>(payload.size()) >> shift & 255);
  }
  const char mask[4] = {1, 2, 3, 4};
  frame.append(mask, 4);
  for (std::size_t i = 0; i < payload.size(); ++i)
    frame += static_cast<char>(payload[i] ^ mask[i % 4]);
  if (!try_send(frame)) throw std::runtime_error("send failed");
}

ws_frame client::read_frame() {
  const auto head = take(2);
  ws_frame out;
  out.fin = (head[0] & 0x80) != 0;
  out.opcode = head[0] & 15;
  std::size_t size = head[1] & 127;
  if (size >= 126) {
    const auto bytes = take(size == 126 ? 2 : 8);
    size = 0;
    for (const char c : bytes)
      size = size << 8 | static_cast<unsigned char>(c);
  }
  out.payload = take(size);
  return out;
}

std::string client::read_text() {
  for (;;) {
    auto frame = read_frame();
    if (frame.opcode == 1) return frame.payload;
    if (frame.opcode == 8)
      throw std::runtime_error("closed: " + std::to_string(frame.close_code()));
    if (frame.opcode == 9) send_frame(frame.payload, 10);
  }
}

void client::join_close() {
  for (;;) {
    const auto frame = read_frame();
    if (frame.opcode != 8) continue;
    send_frame(frame.payload.substr(0, 2), 8);
    return;
  }
}

} // namespace twill::testing
