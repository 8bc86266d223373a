#include "tools/twill-bench/runs/sweep_file.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <boost/json/value_to.hpp>

#include <cmath>
#include <stdexcept>
#include <utility>

namespace twill::bench {
namespace {

namespace json = boost::json;

/// A rounded number. Rounding keeps a file unchanged when it is read and written again, although
/// Boost.JSON's reader may lose the last bit of a double.
json::value number(double value) {
  if (std::fabs(value) < 1e9) value = std::round(value * 1e6) / 1e6;
  if (std::floor(value) == value && std::fabs(value) < 1e15)
    return static_cast<std::int64_t>(value);
  return value;
}

json::value phase_value(const std::optional<run_figures>& of) {
  if (!of) return nullptr;
  json::object out;
  for (const figure_entry& each : all_figures())
    out[each.key] = number((*of).*each.member);
  out["first_error"] = of->first_error;
  return out;
}

std::optional<run_figures> read_phase(const json::value& from) {
  if (!from.is_object()) return std::nullopt;
  run_figures out;
  for (const figure_entry& each : all_figures())
    if (const json::value* found = from.as_object().if_contains(each.key))
      out.*each.member = found->to_number<double>();
  if (!from.as_object().contains("total_token_throughput")) // an older file
    out.total_tokens_per_s = out.requests_per_s * (out.input_tokens + out.output_tokens);
  out.first_error = json::value_to<std::string>(from.at("first_error"));
  return out;
}

std::string text(const json::object& from, const char* key) {
  return json::value_to<std::string>(from.at(key));
}

sweep_setup read_setup(const json::object& from) {
  sweep_setup out;
  out.backend = text(from, "backend");
  out.model = text(from, "model_id");
  out.seed = from.at("seed").to_number<std::uint64_t>();
  out.latency_requests = from.at("latency_requests").to_number<std::int64_t>();
  out.throughput_requests = from.at("throughput_requests").to_number<std::int64_t>();
  out.throughput_concurrency = from.at("throughput_concurrency").to_number<std::int64_t>();
  out.ignore_eos = from.at("ignore_eos").as_bool();
  out.request_extras = text(from, "request_extras");
  out.title = text(from, "title");
  out.server = text(from, "server");
  out.hardware = text(from, "hardware");
  out.date = text(from, "date");
  out.context_limit = from.at("context_limit").to_number<std::int64_t>();
  return out;
}

json::object setup_object(const sweep_setup& of) {
  return {
      {"backend", of.backend},
      {"model_id", of.model},
      {"seed", of.seed},
      {"latency_requests", of.latency_requests},
      {"throughput_requests", of.throughput_requests},
      {"throughput_concurrency", of.throughput_concurrency},
      {"ignore_eos", of.ignore_eos},
      {"request_extras", of.request_extras},
      {"title", of.title},
      {"server", of.server},
      {"hardware", of.hardware},
      {"date", of.date},
      {"context_limit", of.context_limit},
  };
}

} // namespace

std::string sweep_json(const sweep& of) {
  // Each cell is on a line of its own, so that a diff of two files shows which cells differ.
  std::string out = "{\"twill_bench_sweep\":1,\"version\":\"" TWILL_VERSION "\",\"interrupted\":";
  out += of.interrupted ? "true" : "false";
  out += ",\n\"setup\":" + json::serialize(setup_object(of.setup)) + ",\n\"cells\":[";
  for (std::size_t i = 0; i < of.cells.size(); ++i) {
    const sweep_cell& cell = of.cells[i];
    const json::object object{
        {"input_len", cell.input_tokens},
        {"output_len", cell.output_tokens},
        {"skipped", cell.skipped.empty() ? json::value(nullptr) : json::value(cell.skipped)},
        {"latency", phase_value(cell.latency)},
        {"throughput", phase_value(cell.throughput)},
    };
    out += (i == 0 ? "\n" : ",\n") + json::serialize(object);
  }
  return out + "\n]}\n";
}

sweep read_sweep(const std::string& text_of_file, const std::string& name) {
  try {
    const json::value root = json::parse(text_of_file);
    const json::object& all = root.as_object();
    if (!all.contains("twill_bench_sweep")) throw std::runtime_error("it is no sweep's result");
    sweep out;
    out.interrupted = all.at("interrupted").as_bool();
    out.setup = read_setup(all.at("setup").as_object());
    for (const json::value& each : all.at("cells").as_array()) {
      const json::object& from = each.as_object();
      sweep_cell cell;
      cell.input_tokens = from.at("input_len").to_number<std::int32_t>();
      cell.output_tokens = from.at("output_len").to_number<std::int32_t>();
      if (from.at("skipped").is_string()) cell.skipped = text(from, "skipped");
      cell.latency = read_phase(from.at("latency"));
      cell.throughput = read_phase(from.at("throughput"));
      out.cells.push_back(std::move(cell));
    }
    return out;
  } catch (const std::exception& error) {
    throw std::runtime_error(name + ": not a sweep of twill-bench: " + error.what());
  }
}

bool is_sweep(const std::string& text_of_file) {
  boost::system::error_code error;
  const json::value root = json::parse(text_of_file, error);
  return !error && root.is_object() && root.as_object().contains("twill_bench_sweep");
}

std::string setup_conflict(const sweep_setup& recorded, const sweep_setup& ordered) {
  const json::object left = setup_object(recorded), right = setup_object(ordered);
  for (const char* key : {"backend", "model_id", "seed", "latency_requests", "throughput_requests",
                          "throughput_concurrency", "ignore_eos", "request_extras"})
    if (left.at(key) != right.at(key))
      return std::string(key) + " is " + json::serialize(left.at(key)) + " in the results and " +
             json::serialize(right.at(key)) + " in this order";
  return {};
}

} // namespace twill::bench
