// chip: stands in for a GPU and its runtime in tests. It has memory that only its own work may
// access, streams of work, and points in the streams that can be waited for.
//
// The work of a stream is done in order by the chip's one thread, and as late as possible: when a
// thread waits for it. The pages of the chip's memory are protected except while the chip works.
// Functions may be called from any thread; wait() blocks its caller.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace twill::test::chip {

/// Zero-filled and page-aligned; null where the system refuses it.
void* allocate(std::size_t bytes);
/// No work that has been begun may use it.
void release(void* memory);

struct stream;
/// A point in a stream: the end of all work that had been queued by some moment.
struct point {
  std::shared_ptr<stream> of; ///< null: it has passed
  long number = 0;
};

std::shared_ptr<stream> make_stream();
void begin(const std::shared_ptr<stream>& on, std::function<void()> work);
/// What is begun on the stream from now on is done after the point.
void follow(const std::shared_ptr<stream>& on, const point& after);
point end_of(const std::shared_ptr<stream>& on);
/// Returns when all work up to the point is done.
void wait(const point& until);

} // namespace twill::test::chip
