// config: how a checkpoint was quantised, as its configuration says it. Plain data; pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/base/value.hpp"
#include "models/errc.hpp"

namespace twill::models::quant {

enum class method { gptq, awq };

struct quant_config {
  quant::method method = method::gptq;
  std::int32_t bits = 4;
  std::int32_t group_size = 128; ///< input columns per scale; -1 for all of them
  bool zeros_less_one = true;    ///< GPTQ v1 stores zero points minus one, v2 as they are
  std::string name() const;      ///< "GPTQ-4", "GPTQ-8", "AWQ-4"
};

/// Reads `object`: config.json's quantization_config, quantize_config.json or quant_config.json.
/// `where` names it in messages, and `assumed` is the method when the object names none. Fails with
/// `unsupported` for any method, code width or layout other than those of GPTQ-4, GPTQ-8 and AWQ-4
/// (GEMM), and with bad_metadata for impossible values.
result<quant_config> read_config(const value& object, const std::string& where,
                                 std::optional<method> assumed);

} // namespace twill::models::quant
