// SPDX-License-Identifier: Apache-2.0
#include "bench/queue_bench/rounds.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "bench/queue_bench/gang.h"

namespace muster::queue_bench {
namespace {

// Calls of each verb in a side's turn, which takes some 30 ms: long enough for the side to warm the
// machine's caches, short enough for a disturbance of the machine to meet both sides.
constexpr int kCallsPerTurn = 32;
constexpr int64_t kMessagesPerTurn = int64_t{kCallsPerTurn} * kBatch;

// A side, and how long each of its verbs took in all rounds so far.
struct Timed {
  Side* side;  // not owned
  double put_seconds = 0;
  double take_seconds = 0;
};

// The two sides in turn. The first of a round may find the machine in another state than the
// second, so the sides alternate as first.
using Pair = std::array<Timed, 2>;
std::array<Timed*, 2> OrderOf(Pair& pair, int64_t round) {
  const auto first = static_cast<size_t>(round % 2);
  return {&pair[first], &pair[1 - first]};
}

int64_t RoundsFor(int64_t messages, int64_t per_round) {
  return (messages + per_round - 1) / per_round;
}

// Puts and takes by turns, so that the depth grows by no more than a batch.
void TakeTurn(Timed& timed, Bodies& bodies) {
  std::vector<std::vector<std::string>> batches(kCallsPerTurn);
  for (auto& batch : batches) batch = bodies.Next(kBatch);
  for (auto& batch : batches) {
    timed.put_seconds += SecondsOf([&] { timed.side->Put(0, std::move(batch)); });
    timed.take_seconds += SecondsOf([&] { timed.side->Take(kBatch); });
  }
}

void PutOneByOne(Side& side, int caller, std::vector<std::string> bodies) {
  for (std::string& body : bodies) {
    std::vector<std::string> one;
    one.push_back(std::move(body));
    side.Put(caller, std::move(one));
  }
}

double PutFromAll(Gang& gang, Side& side, int puts_per_caller, Bodies& bodies) {
  std::vector<std::vector<std::string>> shares(kCallers);
  for (auto& share : shares) share = bodies.Next(puts_per_caller);
  return gang.Run([&](int caller) {
    PutOneByOne(side, caller, std::move(shares[static_cast<size_t>(caller)]));
  });
}

}  // namespace

BatchRates MeasureBatches(Side& ours, Side& other, int64_t messages, Bodies& bodies) {
  Pair pair{Timed{&ours}, Timed{&other}};
  const int64_t rounds = RoundsFor(messages, kMessagesPerTurn);
  for (int64_t round = 0; round < rounds; ++round) {
    for (Timed* timed : OrderOf(pair, round)) TakeTurn(*timed, bodies);
  }
  const auto moved = static_cast<double>(rounds * kMessagesPerTurn);
  return {{moved / pair[0].put_seconds, moved / pair[1].put_seconds},
          {moved / pair[0].take_seconds, moved / pair[1].take_seconds}};
}

Rates MeasureSinglePuts(Side& ours, Side& other, int64_t messages, int puts_per_caller,
                        Bodies& bodies) {
  Gang gang(kCallers);
  Pair pair{Timed{&ours}, Timed{&other}};
  const int64_t per_round = int64_t{kCallers} * puts_per_caller;
  const int64_t rounds = RoundsFor(messages, per_round);
  for (int64_t round = 0; round < rounds; ++round) {
    const auto order = OrderOf(pair, round);
    for (Timed* timed : order) {
      timed->put_seconds += PutFromAll(gang, *timed->side, puts_per_caller, bodies);
    }
    for (Timed* timed : order) Drain(*timed->side, per_round, kBulk);
  }
  const auto put = static_cast<double>(rounds * per_round);
  return {put / pair[0].put_seconds, put / pair[1].put_seconds};
}

void Fill(Side& side, int64_t messages, int batch, Bodies& bodies) {
  while (messages > 0) {
    const auto count = static_cast<int>(std::min<int64_t>(messages, batch));
    side.Put(0, bodies.Next(count));
    messages -= count;
  }
}

void Drain(Side& side, int64_t messages, int batch) {
  while (messages > 0) {
    const auto count = static_cast<int>(std::min<int64_t>(messages, batch));
    side.Take(count);
    messages -= count;
  }
}

double SecondsOf(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace muster::queue_bench
