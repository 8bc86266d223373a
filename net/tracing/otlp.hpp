// otlp: spans as the bytes of OTLP's ExportTraceServiceRequest, in Protocol Buffers' wire format.
// Pure. The field numbers are those of opentelemetry/proto/trace/v1/trace.proto and its imports,
// version 1; tests read the bytes with OpenTelemetry's own generated decoder.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "net/tracing/trace_parent.hpp"

namespace twill::net {

/// Text that is no UTF-8 is mended where it is written, because decoders refuse a whole message
/// for it.
using attribute_value =
    std::variant<std::string, std::int64_t, double, bool, std::vector<std::string>>;
using attributes = std::vector<std::pair<std::string, attribute_value>>;

enum class span_kind { internal = 1, server = 2 };

struct span {
  trace_id trace{};
  span_id id{}, parent{}; ///< no parent: all zero
  std::string name;
  span_kind kind = span_kind::internal;
  std::uint64_t start_unix_ns = 0, end_unix_ns = 0;
  attributes about;
  bool failed = false;
};

/// `resource` describes the process that the spans are of.
std::string export_request(const attributes& resource, const std::vector<span>& spans);

} // namespace twill::net
