#include "net/batch/batch_input.hpp"

#include <utility>

namespace twill::net {
namespace {

constexpr std::int64_t max_lines = 50'000; // OpenAI's limit
constexpr std::size_t max_faults = 100;

} // namespace

batch_input::batch_input(file_store& files, std::string file_id)
    : files_(files), file_id_(std::move(file_id)), in_(files.open(file_id_)) {}

batch_input::~batch_input() {
  files_.release(file_id_);
}

bool batch_input::read(std::string& text) {
  while (in_ && std::getline(*in_, text)) {
    ++number_;
    if (!text.empty() && text.back() == '\r') text.pop_back();
    if (text.find_first_not_of(" \t") != std::string::npos) return true;
  }
  return false;
}

batch_input::verdict batch_input::check(const std::string& endpoint) {
  verdict out;
  if (!in_) {
    out.faults.push_back({"file_not_found", "the input file cannot be read", "input_file_id", 0});
    return out;
  }
  std::unordered_set<std::string> ids;
  std::string text;
  while (out.faults.size() < max_faults && read(text)) {
    if (++out.total > max_lines) {
      out.faults.push_back({"too_many_requests",
                            "a file must have at most " + std::to_string(max_lines) + " requests",
                            "", number_});
      break;
    }
    auto parsed = parse_batch_line(text, endpoint);
    if (auto* fault = std::get_if<batch_fault>(&parsed)) {
      fault->line = number_;
      out.faults.push_back(std::move(*fault));
    } else if (const auto& id = std::get<batch_line>(parsed).custom_id; !ids.insert(id).second) {
      out.faults.push_back({"duplicate_custom_id",
                            "`custom_id` must be unique in its file, got \"" + id + "\" again",
                            "custom_id", number_});
    }
  }
  if (out.total == 0)
    out.faults.push_back({"empty_file", "a file must have at least one request, got none", "", 0});
  rewind();
  return out;
}

void batch_input::rewind() {
  in_->clear();
  in_->seekg(0);
  number_ = 0;
}

std::optional<std::int64_t> batch_input::skip(const std::unordered_set<std::string>& custom_ids,
                                              const std::string& endpoint) {
  if (!in_) return std::nullopt;
  std::int64_t left = 0;
  std::string text;
  while (read(text)) {
    const auto parsed = parse_batch_line(text, endpoint);
    const auto* line = std::get_if<batch_line>(&parsed);
    const bool skipped = line != nullptr && custom_ids.contains(line->custom_id);
    skipped_.resize(static_cast<std::size_t>(number_) + 1);
    skipped_.back() = skipped;
    if (!skipped) ++left;
  }
  if (in_->bad()) return std::nullopt;
  rewind();
  return left;
}

std::optional<std::string> batch_input::next() {
  if (held_) return std::exchange(held_, std::nullopt);
  std::string text;
  while (read(text)) {
    const auto number = static_cast<std::size_t>(number_);
    if (number >= skipped_.size() || !skipped_[number]) return text;
  }
  return std::nullopt;
}

} // namespace twill::net
