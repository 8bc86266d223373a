// published_sweeps: the figures of the published sweeps whose form twill-bench's tables follow.
#include "tools/twill-bench/runs/published_sweeps.hpp"

#include <array>
#include <stdexcept>

namespace twill::bench {
namespace {

struct row {
  std::int32_t input_tokens, output_tokens;
  double requests_per_s, output_tokens_per_s, ms_per_token, ms_per_output_token;
};

constexpr std::array<row, 15> baichuan2_13b_gptq{{
    {128, 128, 6.77, 865.93, 6.13, 12.26},
    {128, 512, 1.34, 687.12, 9.94, 12.43},
    {128, 1024, 0.45, 462.34, 10.98, 12.36},
    {128, 2048, 0.16, 335.96, 11.90, 12.65},
    {512, 128, 3.16, 404.87, 2.68, 13.41},
    {512, 512, 0.72, 371.09, 6.37, 12.74},
    {512, 1024, 0.33, 333.25, 8.50, 12.75},
    {512, 2048, 0.14, 286.44, 10.34, 12.93},
    {1024, 128, 1.83, 234.20, 1.56, 14.04},
    {1024, 512, 0.54, 278.93, 4.35, 13.05},
    {1024, 1024, 0.26, 271.25, 6.53, 13.06},
    {1024, 2048, 0.12, 242.95, 8.78, 13.17},
    {2048, 128, 1.20, 153.03, 0.93, 15.84},
    {2048, 512, 0.39, 199.95, 2.79, 13.95},
    {2048, 1024, 0.19, 196.07, 4.54, 13.62},
}};

constexpr std::array<row, 16> chatglm3_6b{{
    {128, 128, 21.36, 2733.53, 6.74, 13.48},
    {128, 512, 5.75, 2944.63, 10.90, 13.63},
    {128, 1024, 2.51, 2573.64, 12.26, 13.80},
    {128, 2048, 0.96, 1967.15, 13.14, 13.97},
    {512, 128, 11.97, 1531.67, 2.87, 14.33},
    {512, 512, 4.27, 2183.94, 7.08, 14.17},
    {512, 1024, 2.05, 2098.21, 9.39, 14.09},
    {512, 2048, 0.83, 1709.44, 11.31, 14.14},
    {1024, 128, 7.42, 950.04, 1.63, 14.68},
    {1024, 512, 3.18, 1628.87, 4.73, 14.18},
    {1024, 1024, 1.63, 1669.65, 7.08, 14.17},
    {1024, 2048, 0.74, 1522.89, 9.35, 14.02},
    {2048, 128, 4.24, 542.15, 0.89, 15.18},
    {2048, 512, 2.12, 1087.14, 2.85, 14.23},
    {2048, 1024, 1.20, 1225.74, 4.70, 14.09},
    {2048, 2048, 0.55, 1125.95, 7.01, 14.02},
}};

constexpr std::array<row, 16> qwen_14b{{
    {128, 128, 5.84, 747.57, 12.85, 25.69},
    {128, 512, 1.11, 565.85, 20.57, 25.71},
    {128, 1024, 0.38, 388.06, 22.83, 25.69},
    {128, 2048, 0.12, 255.35, 22.95, 24.39},
    {512, 128, 2.49, 318.54, 5.35, 26.76},
    {512, 512, 0.60, 308.76, 13.02, 26.03},
    {512, 1024, 0.24, 248.50, 17.31, 25.96},
    {512, 2048, 0.13, 275.54, 15.69, 19.62},
    {1024, 128, 1.43, 182.67, 3.07, 27.65},
    {1024, 512, 0.38, 192.71, 8.78, 26.34},
    {1024, 1024, 0.17, 172.86, 13.01, 26.01},
    {1024, 2048, 0.17, 338.69, 8.76, 13.14},
    {2048, 128, 0.63, 80.38, 1.72, 29.22},
    {2048, 512, 0.18, 94.06, 5.55, 27.77},
    {2048, 1024, 0.08, 85.43, 9.22, 27.67},
    {2048, 2048, 0.03, 71.09, 13.84, 27.68},
}};

constexpr std::array<row, 16> mistral_7b_awq{{
    {128, 128, 9.36, 1197.56, 6.31, 12.62},
    {128, 512, 2.43, 1245.15, 9.98, 12.48},
    {128, 1024, 1.12, 1144.08, 11.27, 12.68},
    {128, 2048, 0.47, 962.78, 12.22, 12.98},
    {512, 128, 3.52, 450.55, 2.81, 14.03},
    {512, 512, 1.59, 812.33, 6.77, 13.55},
    {512, 1024, 0.87, 891.85, 8.88, 13.31},
    {512, 2048, 0.39, 798.45, 10.57, 13.21},
    {1024, 128, 2.11, 270.68, 1.75, 15.72},
    {1024, 512, 1.12, 571.98, 4.64, 13.91},
    {1024, 1024, 0.67, 683.30, 6.71, 13.41},
    {1024, 2048, 0.33, 669.71, 8.89, 13.33},
    {2048, 128, 1.14, 145.33, 1.06, 18.04},
    {2048, 512, 0.70, 358.76, 2.90, 14.51},
    {2048, 1024, 0.44, 450.81, 4.57, 13.72},
    {2048, 2048, 0.23, 478.05, 6.79, 13.59},
}};

constexpr std::array<row, 16> mistral_7b_awq_tgi{{
    {128, 128, 10.86, 1107.30, 7.16, 16.47},
    {128, 512, 5.09, 1458.52, 10.20, 16.32},
    {128, 1024, 4.03, 1402.37, 9.85, 16.34},
    {128, 2048, 2.37, 1287.54, 11.33, 16.90},
    {512, 128, 4.40, 432.17, 3.27, 18.83},
    {512, 512, 3.28, 714.87, 3.84, 19.11},
    {512, 1024, 2.82, 772.32, 2.92, 20.69},
    {512, 2048, 2.53, 703.89, 6.02, 18.45},
    {1024, 128, 2.36, 255.23, 2.17, 19.50},
    {1024, 512, 1.82, 568.31, 3.46, 27.38},
    {1024, 1024, 1.47, 693.07, 5.25, 19.08},
    {1024, 2048, 1.19, 697.36, 4.30, 19.43},
    {2048, 128, 1.22, 143.47, 1.15, 27.51},
    {2048, 512, 0.99, 374.50, 2.45, 19.99},
    {2048, 1024, 0.82, 481.78, 3.69, 19.60},
    {2048, 2048, 0.70, 527.28, 3.44, 21.99},
}};

struct table {
  const char* name;
  const char* title;
  const char* remark; ///< why a figure is misleading; empty when none is known to be
  const row* first;
  std::size_t n_rows;
};

constexpr std::array<table, 5> tables{{
    {"baichuan2-13b-gptq", "Baichuan2-13B GPTQ, vLLM 0.2.7, A100 40G", "",
     baichuan2_13b_gptq.data(), baichuan2_13b_gptq.size()},
    {"chatglm3-6b", "ChatGLM3-6B, vLLM 0.2.7, A100 40G", "", chatglm3_6b.data(),
     chatglm3_6b.size()},
    {"qwen-14b", "Qwen-14B, vLLM 0.2.7, A100 40G",
     "rows (128,2048), (512,2048) and (1024,2048) were cut at 2,048 tokens of context but divided "
     "by the output asked for",
     qwen_14b.data(), qwen_14b.size()},
    {"mistral-7b-awq", "Mistral-7B-OpenOrca-AWQ, vLLM 0.2.5, A100 40G", "", mistral_7b_awq.data(),
     mistral_7b_awq.size()},
    {"mistral-7b-awq-tgi", "Mistral-7B-OpenOrca-AWQ, TGI 1.3.4, A100 40G",
     "requests stopped at the end id: requests/s does not compare with full-length runs",
     mistral_7b_awq_tgi.data(), mistral_7b_awq_tgi.size()},
}};

sweep make(const table& from) {
  sweep out;
  out.setup.title = from.title;
  out.setup.hardware = "A100 40G";
  for (std::size_t i = 0; i < from.n_rows; ++i) {
    const row& one = from.first[i];
    sweep_cell cell;
    cell.input_tokens = one.input_tokens;
    cell.output_tokens = one.output_tokens;
    run_figures figures;
    figures.completed = 1;
    figures.requests_per_s = one.requests_per_s;
    figures.output_tokens_per_s = one.output_tokens_per_s;
    figures.ms_per_token = one.ms_per_token;
    figures.ms_per_output_token = one.ms_per_output_token;
    cell.latency = cell.throughput = figures;
    out.cells.push_back(cell);
  }
  return out;
}

} // namespace

std::vector<std::string> reference_names() {
  std::vector<std::string> out;
  for (const table& each : tables)
    out.emplace_back(each.name);
  return out;
}

reference reference_sweep(const std::string& name) {
  for (const table& each : tables)
    if (name == each.name) return {make(each), each.remark};
  throw std::invalid_argument("no reference is named " + name);
}

} // namespace twill::bench
