// ParallelMap: asks many at a time, so that one who is slow holds up nobody else.
#pragma once

#include <future>
#include <type_traits>
#include <vector>

namespace muster::cli {

// What `ask` answers of each of `whom`, in their order. It runs on a thread for each of them: a
// mesh has hundreds of instances at the most (mesh/limits.h).
template <typename Whom, typename Ask>
auto ParallelMap(const std::vector<Whom>& whom, const Ask& ask) {
  using Answer = std::invoke_result_t<Ask, const Whom&>;
  std::vector<std::future<Answer>> asked;
  asked.reserve(whom.size());
  for (const Whom& one : whom) {
    asked.push_back(std::async(std::launch::async, [&ask, &one] { return ask(one); }));
  }
  std::vector<Answer> answers;
  answers.reserve(whom.size());
  for (std::future<Answer>& answer : asked) answers.push_back(answer.get());
  return answers;
}

}  // namespace muster::cli
