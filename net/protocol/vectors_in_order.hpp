// vectors_in_order: puts the embedding vectors of the inputs of one API call, which arrive in any
// order, into the order of the inputs. Each vector is released as soon as all earlier vectors have
// arrived. Not thread-safe.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace twill::net {

class vectors_in_order {
public:
  using vector_ptr = std::shared_ptr<const std::vector<float>>;

  /// Takes the vector of request `index`. Calls write(index, vector) for each vector that is next
  /// in order.
  template <class Write>
  void add(std::size_t index, vector_ptr vector, Write&& write) {
    waiting_.emplace(index, std::move(vector));
    for (auto first = waiting_.begin(); first != waiting_.end() && first->first == next_;
         first = waiting_.erase(first))
      write(next_++, *first->second);
  }

private:
  /// Vectors that wait for vectors with smaller indices, by index.
  std::map<std::size_t, vector_ptr> waiting_;
  std::size_t next_ = 0;
};

} // namespace twill::net
