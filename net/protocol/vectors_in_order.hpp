// vectors_in_order: hands out the vectors of a call's requests in the order of the requests, each
// as soon as those before it are there. One thread at a time.
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

  /// Takes the vector of one request; calls write(index, vector) for each whose turn has come.
  template <class Write>
  void add(std::size_t index, vector_ptr vector, Write&& write) {
    waiting_.emplace(index, std::move(vector));
    for (auto first = waiting_.begin(); first != waiting_.end() && first->first == next_;
         first = waiting_.erase(first))
      write(next_++, *first->second);
  }

private:
  std::map<std::size_t, vector_ptr> waiting_; ///< by index
  std::size_t next_ = 0;
};

} // namespace twill::net
