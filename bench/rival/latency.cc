// SPDX-License-Identifier: Apache-2.0
#include "bench/rival/latency.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>

#include "bench/retail/csv_reader.h"
#include "bench/rival/client.h"

namespace rival {
namespace {

constexpr char kSubject[] = "latency";
constexpr int64_t kPatienceMs = 5'000;
constexpr uint32_t kSeed = 20101201;  // the gaps are the same in every run

// The same in all processes of a machine.
int64_t Now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

class Pipe {
 public:
  Pipe() {
    if (pipe(ends_.data()) != 0) bench::Die("no pipe");
  }
  void Write(int64_t value) const {
    if (write(ends_[1], &value, sizeof(value)) != sizeof(value)) bench::Die("the pipe broke");
  }
  int64_t Read() const {
    int64_t value = 0;
    if (read(ends_[0], &value, sizeof(value)) != sizeof(value)) bench::Die("the worker ended");
    return value;
  }
  void CloseWriter() const { close(ends_[1]); }

 private:
  std::array<int, 2> ends_{};
};

int64_t SentAt(absl::string_view data) {
  int64_t sent = 0;
  if (data.size() != sizeof(sent)) bench::Die("a message of another kind");
  std::memcpy(&sent, data.data(), sizeof(sent));
  return sent;
}

// Its first word into the pipe says that it listens; the other words are latencies.
void WorkOnStream(const LatencyOptions& options, const Pipe& lapses) {
  Client client(options.server, 1);
  client.MakeStream(kSubject, kSubject);
  Consumer consumer = client.Consume(kSubject, 1);
  lapses.Write(0);
  for (int done = 0; done < options.samples;) {
    for (Message& message : consumer.Fetch(kPatienceMs)) {
      lapses.Write(Now() - SentAt(message.data()));
      message.Ack();
      ++done;
    }
  }
}

void WorkOnSubject(const LatencyOptions& options, const Pipe& lapses) {
  Client client(options.server, 1);
  natsSubscription* subscription = nullptr;
  Check(natsConnection_SubscribeSync(&subscription, client.connection(), kSubject), "subscribing");
  Check(natsConnection_Flush(client.connection()), "flushing");
  lapses.Write(0);
  for (int done = 0; done < options.samples; ++done) {
    natsMsg* message = nullptr;
    Check(natsSubscription_NextMsg(&message, subscription, kPatienceMs), "waiting");
    const int64_t now = Now();
    lapses.Write(now - SentAt({natsMsg_GetData(message),
                               static_cast<size_t>(natsMsg_GetDataLength(message))}));
    natsMsg_Destroy(message);
  }
  natsSubscription_Destroy(subscription);
}

void Send(Path path, Client* client) {
  const int64_t now = Now();
  std::array<char, sizeof(now)> data;
  std::memcpy(data.data(), &now, sizeof(now));
  if (path == Path::kJetStream) {
    client->Publish(kSubject, {data.data(), data.size()});
  } else {
    Check(natsConnection_Publish(client->connection(), kSubject, data.data(), data.size()),
          "publishing");
  }
  Check(natsConnection_Flush(client->connection()), "flushing");
}

}  // namespace

std::vector<double> MeasureLatency(const LatencyOptions& options) {
  const Pipe lapses;
  const pid_t worker = fork();
  if (worker < 0) bench::Die("cannot fork");
  if (worker == 0) {
    options.path == Path::kJetStream ? WorkOnStream(options, lapses)
                                     : WorkOnSubject(options, lapses);
    _exit(0);
  }
  lapses.CloseWriter();
  lapses.Read();
  Client client(options.server, 1);
  std::minstd_rand random(kSeed);
  std::uniform_int_distribution<int> gap_ms(options.min_gap_ms, options.max_gap_ms);
  std::vector<double> micros;
  for (int i = 0; i < options.samples; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(gap_ms(random)));
    Send(options.path, &client);
    micros.push_back(static_cast<double>(lapses.Read()) / 1e3);
  }
  waitpid(worker, nullptr, 0);
  return micros;
}

}  // namespace rival
