#include "net/batch/batch_input.hpp"

#include <unordered_set>
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
  in_->clear();
  in_->seekg(0);
  number_ = 0;
  return out;
}

std::optional<std::string> batch_input::next() {
  if (held_) return std::exchange(held_, std::nullopt);
  std::string text;
  if (!read(text)) return std::nullopt;
  return text;
}

} // namespace twill::net
