// SPDX-License-Identifier: Apache-2.0

// Event streams beside nats.c alone, in turn on one server:
//
//   event_bench SERVER [--events N] [--batch N] [--rounds N] [--holes 1]
//
// SERVER is nats://HOST:PORT. In each round, each side appends N events of 1 KiB from each of four
// producers, and then two groups read them all. Prints events per second, appended and read, of
// each side, as minimum, median and maximum; and the ratio of the medians. With --holes 1, nats.c
// publishes a batch without any guard: what is lost of it then leaves a hole in the order.
#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "bench/events/side.h"

namespace event_bench {

// The number, in decimal, and padding that does not compress to nothing.
std::string BodyOf(int64_t number) {
  std::string body = absl::StrCat(number, ";");
  body.reserve(kBodyBytes);
  for (uint64_t x = static_cast<uint64_t>(number) | 1; body.size() < kBodyBytes;) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    body.append(reinterpret_cast<const char*>(&x), std::min(sizeof(x), kBodyBytes - body.size()));
  }
  return body;
}

void CheckBody(absl::string_view body, int64_t number) {
  int64_t is = 0;
  if (body.size() != kBodyBytes || !absl::SimpleAtoi(body.substr(0, body.find(';')), &is) ||
      is != number) {
    Die(absl::StrCat("event ", number, " is not where it should be"));
  }
}

namespace {

struct Options {
  std::string server;
  int64_t events = 20'000;  // of each producer
  int batch = 100;
  int rounds = 3;
  bool holes = false;
};

// Events per second, of each round.
struct Figures {
  std::vector<double> appended;
  std::vector<double> read;
};

double Seconds(const std::function<void(int)>& act, int threads) {
  const auto began = std::chrono::steady_clock::now();
  std::vector<std::thread> running;
  running.reserve(static_cast<size_t>(threads));
  for (int i = 0; i < threads; ++i) running.emplace_back([&, i] { act(i); });
  for (std::thread& thread : running) thread.join();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

void Run(const Options& options, int round, Side* side, Figures* figures) {
  const auto events = static_cast<double>(options.events * kProducers);
  side->Make(round);
  const double appending = Seconds(
      [&](int producer) { side->Append(producer, options.events, options.batch); }, kProducers);
  const double reading =
      Seconds([&](int i) { side->Read(i / kProducers, i % kProducers, options.events); },
              kGroups * kProducers);
  side->Remove();
  figures->appended.push_back(events / appending);
  figures->read.push_back(events * kGroups / reading);
}

double Median(std::vector<double>* values) {
  std::sort(values->begin(), values->end());
  return (*values)[values->size() / 2];
}

std::string Spread(std::vector<double>* values) {
  const double median = Median(values);
  return absl::StrCat("[", static_cast<int64_t>(values->front()), ",", static_cast<int64_t>(median),
                      ",", static_cast<int64_t>(values->back()), "]");
}

void Print(const Options& options, Figures* muster, Figures* plain) {
  std::cout << "{\"events\":" << options.events * kProducers << ",\"batch\":" << options.batch
            << ",\"rounds\":" << options.rounds
            << ",\n \"appended_per_second\":{\"muster\":" << Spread(&muster->appended)
            << ",\"plain\":" << Spread(&plain->appended)
            << ",\"ratio\":" << Median(&muster->appended) / Median(&plain->appended)
            << "},\n \"read_per_second\":{\"muster\":" << Spread(&muster->read)
            << ",\"plain\":" << Spread(&plain->read)
            << ",\"ratio\":" << Median(&muster->read) / Median(&plain->read) << "}}\n";
}

}  // namespace
}  // namespace event_bench

int main(int argc, char** argv) {
  using namespace event_bench;
  Options options;
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty() || words.size() % 2 == 0) {
    Die("usage: event_bench SERVER [--events N] [--batch N] [--rounds N] [--holes 1]");
  }
  options.server = words[0];
  for (size_t i = 1; i < words.size(); i += 2) {
    int value = 0;
    if (!absl::SimpleAtoi(words[i + 1], &value) || value < 1) Die("a number of 1 or more");
    if (words[i] == "--events") {
      options.events = value;
    } else if (words[i] == "--batch") {
      options.batch = value;
    } else if (words[i] == "--rounds") {
      options.rounds = value;
    } else if (words[i] == "--holes") {
      options.holes = true;
    } else {
      Die(absl::StrCat("unknown option ", words[i]));
    }
  }
  const std::unique_ptr<Side> muster = MusterSide(options.server);
  const std::unique_ptr<Side> plain = PlainSide(options.server, !options.holes);
  Figures of_muster, of_plain;
  for (int round = 0; round < options.rounds; ++round) {
    const bool muster_first = round % 2 == 0;
    if (muster_first) Run(options, round, muster.get(), &of_muster);
    Run(options, round, plain.get(), &of_plain);
    if (!muster_first) Run(options, round, muster.get(), &of_muster);
  }
  Print(options, &of_muster, &of_plain);
  return 0;
}
