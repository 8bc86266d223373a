#include "tools/twill-bench/sweep/write_sweep.hpp"

#include "tools/twill-bench/report/charts.hpp"
#include "tools/twill-bench/report/html.hpp"
#include "tools/twill-bench/report/write_file.hpp"
#include "tools/twill-bench/sweep/tables.hpp"

namespace twill::bench {

std::string write_sweep(const std::string& folder, const sweep& of) {
  write_file(folder + "/sweep.md", sweep_markdown(of, "svg"));
  write_file(folder + "/sweep.html", sweep_page(of));
  write_file(folder + "/sweep.csv", sweep_csv(of));
  return write_charts(folder, sweep_charts(of));
}

} // namespace twill::bench
