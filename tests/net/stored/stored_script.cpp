#include "tests/net/stored/stored_script.hpp"

#include <random>

namespace twill::testing {
namespace {

using net::stored_bytes;

std::string head_of(const std::string& id) {
  return "head of " + id;
}

const std::string& pick(std::mt19937& random, const std::map<std::string, stored_bytes>& from) {
  return std::next(from.begin(), static_cast<std::ptrdiff_t>(random() % from.size()))->first;
}

} // namespace

std::string describe(const stored_state& state) {
  std::string text;
  for (const auto* part : {&state.running, &state.over}) {
    text += part == &state.running ? "running:" : " over:";
    for (const auto& [id, whole] : *part) {
      text += " " + id + "(" + whole.head + ";";
      for (const auto& record : whole.records)
        text += " " + record.substr(0, 8) + "*" + std::to_string(record.size());
      text += ")";
    }
  }
  return text;
}

std::string stored_call::text() const {
  static constexpr const char* names[] = {"step", "finish", "forget", "erase", "tidy"};
  std::string out = names[static_cast<int>(kind)] + (" " + id);
  for (const auto& begun : begins)
    out += " +" + begun;
  for (const auto& [of, record] : records)
    out += " " + of + ":" + std::to_string(record.size());
  return out;
}

std::vector<stored_call> random_script(std::uint32_t seed, int n_calls) {
  std::mt19937 random(seed);
  stored_state state;
  std::vector<stored_call> script;
  int n_records = 0;
  for (int i = 0; i < n_calls; ++i) {
    stored_call call;
    const auto draw = random() % 10;
    if (draw < 6 || state.running.empty()) {
      call.kind = stored_call::operation::step;
      auto known = state;
      const std::string id = "r" + std::to_string(random() % 8);
      if (!state.running.contains(id) && !state.over.contains(id)) {
        call.begins.push_back(id);
        known = script_runner::after(state, call);
      }
      for (auto n = random() % 4; n > 0 && !known.running.empty(); --n) {
        const auto bytes = random() % 20 == 0 ? 3000 : random() % 40;
        auto record = std::to_string(n_records++) + "-";
        record.resize(bytes + record.size(), static_cast<char>('a' + random() % 26));
        call.records.emplace_back(pick(random, known.running), std::move(record));
      }
    } else if (draw == 6) {
      call.kind = stored_call::operation::finish;
      call.id = pick(random, state.running);
    } else if (draw == 7) {
      call.kind = stored_call::operation::forget;
      call.id = pick(random, state.running);
    } else if (draw == 8 && !state.over.empty()) {
      call.kind = stored_call::operation::erase;
      call.id = pick(random, state.over);
    }
    state = script_runner::after(state, call);
    script.push_back(std::move(call));
  }
  return script;
}

stored_state script_runner::after(const stored_state& before, const stored_call& call) {
  auto state = before;
  switch (call.kind) {
  case stored_call::operation::step:
    for (const auto& id : call.begins)
      state.running[id] = {id, head_of(id), {}};
    for (const auto& [id, record] : call.records)
      state.running.at(id).records.push_back(record);
    break;
  case stored_call::operation::finish: {
    auto whole = state.running.at(call.id);
    whole.records.emplace_back("the end");
    state.running.erase(call.id);
    state.over[call.id] = std::move(whole);
    break;
  }
  case stored_call::operation::forget:
    state.running.erase(call.id);
    break;
  case stored_call::operation::erase:
    state.over.erase(call.id);
    break;
  case stored_call::operation::tidy:
    break;
  }
  return state;
}

std::error_code script_runner::run(const stored_call& call) {
  auto next = after(state_, call);
  std::error_code error;
  switch (call.kind) {
  case stored_call::operation::step: {
    std::vector<std::string> heads;
    heads.reserve(call.begins.size());
    net::stored_folder::step what;
    for (const auto& id : call.begins) {
      heads.push_back(head_of(id));
      what.begins.push_back({&id, &heads.back()});
    }
    for (const auto& [id, record] : call.records)
      what.records.push_back({&id, &record});
    error = folder_.append(what);
    break;
  }
  case stored_call::operation::finish:
    error = folder_.finish(next.over.at(call.id));
    break;
  case stored_call::operation::forget:
    folder_.forget(call.id);
    break;
  case stored_call::operation::erase:
    error = folder_.erase(call.id);
    break;
  case stored_call::operation::tidy:
    now_ += std::chrono::seconds(1);
    error = folder_.tidy(now_, [&](const std::string& id) -> const stored_bytes* {
      const auto found = state_.running.find(id);
      return found == state_.running.end() ? nullptr : &found->second;
    });
  }
  if (!error) state_ = std::move(next);
  return error;
}

stored_state state_of(const net::stored_folder& folder, const net::stored_folder::contents& found) {
  stored_state state;
  for (const auto& whole : found.running)
    state.running[whole.id] = whole;
  for (const auto& one : found.over) {
    const auto whole = folder.read(one.id);
    if (whole.ok()) state.over[one.id] = whole.value();
  }
  return state;
}

} // namespace twill::testing
