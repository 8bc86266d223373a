#include "net/stored/stored_record.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "actors/port/error_words.hpp"

namespace twill::net {
namespace {

using actors::event;
using actors::token_logprob;
using actors::token_output;

/// The parts of an event that its stored record can have. The values are stored in files and must
/// never change their meaning.
enum part : std::uint64_t {
  has_choice = 1,
  is_started = 2,
  is_last = 4,
  has_tokens = 8,
  has_text = 16,
  has_parts = 32,
  has_finish = 64,
  has_error = 128,
  has_prompt_ids = 256,
  has_prompt_scores = 512,
  has_continuity = 1024,
  all_parts = 2047,
  went_on = 2048, ///< a resume mark, which has no other parts and is not an event
};

class record_writer {
public:
  void number(std::uint64_t n) {
    for (; n >= 128; n >>= 7)
      out_ += static_cast<char>(n | 128);
    out_ += static_cast<char>(n);
  }
  void id(std::int32_t n) { number(static_cast<std::uint32_t>(n)); }
  void text(std::string_view bytes) {
    number(bytes.size());
    out_ += bytes;
  }
  void real(float f) {
    auto bits = std::bit_cast<std::uint32_t>(f);
    for (int i = 0; i < 4; ++i, bits >>= 8)
      out_ += static_cast<char>(bits);
  }
  void token(const token_logprob& t) {
    id(t.id);
    text(t.bytes);
    real(t.logprob);
  }
  void tokens(const std::vector<token_output>& all) {
    number(all.size());
    for (const auto& one : all) {
      token(one.chosen);
      number(one.top.size());
      for (const auto& other : one.top)
        token(other);
    }
  }
  std::string take() { return std::move(out_); }

private:
  std::string out_;
};

class record_reader {
public:
  explicit record_reader(std::string_view bytes) : left_(bytes) {}

  bool ok() const { return ok_; }
  bool at_end() const { return left_.empty(); }
  std::uint64_t number() {
    std::uint64_t n = 0;
    for (int shift = 0; shift < 64 && !left_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(left_.front());
      left_.remove_prefix(1);
      n |= static_cast<std::uint64_t>(byte & 127) << shift;
      if (byte < 128) return n;
    }
    ok_ = false;
    return 0;
  }
  std::int32_t id() {
    const auto n = number();
    if (n > std::numeric_limits<std::uint32_t>::max()) ok_ = false;
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(n));
  }
  /// Reads the number of elements that follow. Each element takes at least `least` bytes, so a
  /// larger number than fits into the rest of the record is an error.
  std::size_t count(std::size_t least) {
    const auto n = number();
    if (n > left_.size() / least) ok_ = false;
    return ok_ ? static_cast<std::size_t>(n) : 0;
  }
  std::string text() {
    const auto n = count(1);
    std::string bytes(left_.substr(0, n));
    left_.remove_prefix(n);
    return bytes;
  }
  float real() {
    std::uint32_t bits = 0;
    if (left_.size() < 4) {
      ok_ = false;
      return 0;
    }
    for (std::size_t i = 0; i < 4; ++i)
      bits |= std::uint32_t{static_cast<unsigned char>(left_[i])} << (8 * i);
    left_.remove_prefix(4);
    return std::bit_cast<float>(bits);
  }
  token_logprob token() {
    token_logprob t;
    t.id = id();
    t.bytes = text();
    t.logprob = real();
    return t;
  }
  std::vector<token_output> tokens() {
    // The shortest token has an id, an empty text, a float, and the number of alternatives (0).
    constexpr std::size_t least = 7;
    std::vector<token_output> all(count(least));
    for (auto& one : all) {
      one.chosen = token();
      one.top.resize(count(least - 1));
      for (auto& other : one.top)
        other = token();
      if (!ok_) break;
    }
    return all;
  }

private:
  std::string_view left_;
  bool ok_ = true;
};

/// Error codes are stored as their words, which never change.
std::optional<actors::errc> code_of(std::string_view word) {
  for (int i = 0; i <= static_cast<int>(actors::errc::model_changed); ++i)
    if (actors::word_of(static_cast<actors::errc>(i)) == word) return static_cast<actors::errc>(i);
  return std::nullopt;
}

std::uint64_t parts_of(const event& ev) {
  std::uint64_t parts = 0;
  const auto add = [&](bool given, part flag) {
    if (given) parts |= flag;
  };
  add(ev.choice != 0, has_choice);
  add(ev.started, is_started);
  add(ev.last, is_last);
  add(!ev.tokens.empty(), has_tokens);
  add(!ev.text.empty(), has_text);
  add(!ev.parts.empty(), has_parts);
  add(ev.finish.has_value(), has_finish);
  add(ev.error.has_value(), has_error);
  add(!ev.prompt_ids.empty(), has_prompt_ids);
  add(!ev.prompt_scores.empty(), has_prompt_scores);
  add(!ev.continuity.empty(), has_continuity);
  return parts;
}

void write_part(record_writer& out, const actors::output_part& piece) {
  out.number(static_cast<std::uint64_t>(piece.kind) * 2 + (piece.complete ? 1 : 0));
  out.id(piece.call);
  out.text(piece.text);
  out.text(piece.call_id);
}

bool read_part(record_reader& in, actors::output_part& piece) {
  using kind = actors::output_part_kind;
  const auto what = in.number();
  if (what / 2 > static_cast<std::uint64_t>(kind::call_end)) return false;
  piece.kind = static_cast<kind>(what / 2);
  piece.complete = what % 2 != 0;
  piece.call = in.id();
  piece.text = in.text();
  piece.call_id = in.text();
  return in.ok();
}

} // namespace

std::string write_record(const event& ev) {
  record_writer out;
  const auto parts = parts_of(ev);
  out.number(parts);
  if (parts & has_choice) out.id(ev.choice);
  if (parts & has_tokens) out.tokens(ev.tokens);
  if (parts & has_text) out.text(ev.text);
  if (parts & has_parts) {
    out.number(ev.parts.size());
    for (const auto& piece : ev.parts)
      write_part(out, piece);
  }
  if (parts & has_finish) {
    out.number(static_cast<std::uint64_t>(*ev.finish));
    out.text(ev.stop_string);
    out.id(ev.stop_token);
  }
  if (parts & has_error) {
    out.text(actors::word_of(ev.error->code));
    out.text(ev.error->message);
    out.text(ev.error->param);
    out.id(ev.error->retry_after_s);
  }
  if (parts & has_prompt_ids) {
    out.number(ev.prompt_ids.size());
    for (const auto id : ev.prompt_ids)
      out.id(id);
  }
  if (parts & has_prompt_scores) out.tokens(ev.prompt_scores);
  if (parts & has_continuity) out.text(ev.continuity);
  out.id(ev.use.prompt_tokens);
  out.id(ev.use.cached_tokens);
  out.id(ev.use.completion_tokens);
  return out.take();
}

std::optional<event> read_record(std::string_view bytes) {
  record_reader in(bytes);
  event ev;
  const auto parts = in.number();
  if (parts > all_parts) return std::nullopt;
  if (parts & has_choice) ev.choice = in.id();
  ev.started = (parts & is_started) != 0;
  ev.last = (parts & is_last) != 0;
  if (parts & has_tokens) ev.tokens = in.tokens();
  if (parts & has_text) ev.text = in.text();
  if (parts & has_parts) {
    ev.parts.resize(in.count(4));
    for (auto& piece : ev.parts)
      if (!read_part(in, piece)) return std::nullopt;
  }
  if (parts & has_finish) {
    const auto finish = in.number();
    if (finish > static_cast<std::uint64_t>(actors::finish_reason::tool_calls)) return std::nullopt;
    ev.finish = static_cast<actors::finish_reason>(finish);
    ev.stop_string = in.text();
    ev.stop_token = in.id();
  }
  if (parts & has_error) {
    const auto code = code_of(in.text());
    if (!code) return std::nullopt;
    auto& error = ev.error.emplace();
    error.code = *code;
    error.message = in.text();
    error.param = in.text();
    error.retry_after_s = in.id();
  }
  if (parts & has_prompt_ids) {
    ev.prompt_ids.resize(in.count(1));
    for (auto& id : ev.prompt_ids)
      id = in.id();
  }
  if (parts & has_prompt_scores) ev.prompt_scores = in.tokens();
  if (parts & has_continuity) ev.continuity = in.text();
  ev.use.prompt_tokens = in.id();
  ev.use.cached_tokens = in.id();
  ev.use.completion_tokens = in.id();
  if (!in.ok() || !in.at_end() || ev.choice < 0) return std::nullopt;
  return ev;
}

std::string resume_mark() {
  record_writer out;
  out.number(went_on);
  return out.take();
}

bool is_resume_mark(std::string_view bytes) {
  return bytes == resume_mark();
}

drawn_so_far read_drawn(const std::vector<std::string>& records, std::int32_t n_choices) {
  drawn_so_far drawn;
  drawn.made.resize(static_cast<std::size_t>(n_choices));
  for (const auto& record : records) {
    if (is_resume_mark(record)) ++drawn.resumes;
    const auto ev = read_record(record);
    if (!ev || ev->choice >= n_choices) continue;
    drawn.started = drawn.started || ev->started;
    if (ev->started) drawn.continuity = ev->continuity;
    drawn.over = drawn.over || ev->last;
    auto& choice = drawn.made[static_cast<std::size_t>(ev->choice)];
    for (const auto& token : ev->tokens)
      choice.tokens.push_back(token.chosen.id);
    choice.finished = choice.finished || ev->finish.has_value();
  }
  drawn.over = drawn.over || std::all_of(drawn.made.begin(), drawn.made.end(),
                                         [](const auto& one) { return one.finished; });
  return drawn;
}

} // namespace twill::net
