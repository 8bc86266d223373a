// least_seconds: how long a piece of work takes when nothing else disturbs it, which is the least
// time of several runs. Any thread may call the functions.
#pragma once

#include <algorithm>
#include <chrono>

namespace twill {

/// The seconds that one run of `work` takes; always above 0.
template <class Work>
double seconds_of(const Work& work) {
  const auto began = std::chrono::steady_clock::now();
  work();
  return std::max(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(),
                  1e-9);
}

/// The least time of `runs` runs. One run before them is not counted, because it is the first to
/// touch the memory's pages.
template <class Work>
double least_seconds(int runs, const Work& work) {
  work();
  double least = seconds_of(work);
  for (int i = 1; i < runs; ++i)
    least = std::min(least, seconds_of(work));
  return least;
}

/// The least time of as many runs as fit in `budget_s` seconds, and of two runs at least. One run
/// before them is not counted, but takes its share of the budget.
template <class Work>
double least_seconds_within(double budget_s, const Work& work) {
  double spent = seconds_of(work), least = spent;
  for (int i = 0; i < 2 || spent < budget_s; ++i) {
    const double seconds = seconds_of(work);
    least = i == 0 ? seconds : std::min(least, seconds);
    spent += seconds;
  }
  return least;
}

} // namespace twill
