// otlp: encodes spans as the bytes of OTLP's ExportTraceServiceRequest, in the wire format of
// Protocol Buffers. The functions are pure. The field numbers are those of
// opentelemetry/proto/trace/v1/trace.proto and its imports, version 1. Tests read the bytes with
// the decoder that OpenTelemetry generates.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "net/tracing/trace_parent.hpp"

namespace twill::net {

/// Strings that are not valid UTF-8 are repaired when they are encoded, because decoders would
/// refuse the whole message.
using attribute_value =
    std::variant<std::string, std::int64_t, double, bool, std::vector<std::string>>;
using attributes = std::vector<std::pair<std::string, attribute_value>>;

enum class span_kind { internal = 1, server = 2 };

struct span {
  trace_id trace{};
  span_id id{}, parent{}; ///< `parent` is all zeros if there is no parent
  std::string name;
  span_kind kind = span_kind::internal;
  std::uint64_t start_unix_ns = 0, end_unix_ns = 0;
  attributes about;
  bool failed = false;
};

/// `resource` describes the process that has produced the spans.
std::string export_request(const attributes& resource, const std::vector<span>& spans);

} // namespace twill::net
