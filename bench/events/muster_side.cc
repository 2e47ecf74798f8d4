// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/events/side.h"
#include "muster/nats/connection.h"
#include "muster/stream/jetstream/jetstream_event_stream_store.h"

namespace event_bench {
namespace {

namespace stream = muster::stream;

void Check(const absl::Status& status) {
  if (!status.ok()) Die(status.ToString());
}

// A connection and a store, as a process has them.
struct Process {
  explicit Process(const std::string& url) {
    auto opened = muster::nats::Connection::Open(url, {});
    Check(opened.status());
    connection = *std::move(opened);
    auto store_opened = stream::jetstream::JetStreamEventStreamStore::Open(connection.get());
    Check(store_opened.status());
    store = *std::move(store_opened);
  }

  std::unique_ptr<muster::nats::Connection> connection;
  std::unique_ptr<stream::EventStreamStore> store;
};

class Muster final : public Side {
 public:
  explicit Muster(const std::string& url) : producers_(url) {
    for (int i = 0; i < kGroups; ++i) groups_.push_back(std::make_unique<Process>(url));
  }

  void Make(int round) override {
    name_ = absl::StrCat("bench-", round);
    Check(producers_.store->Create(name_, {.partitions = kProducers}));
  }

  void Remove() override { Check(producers_.store->Delete(name_)); }

  void Append(int producer, int64_t events, int batch) override {
    std::vector<stream::NewEvent> next;
    for (int64_t number = 1; number <= events; ++number) {
      next.push_back({.body = BodyOf(number)});
      if (next.size() < static_cast<size_t>(batch) && number < events) continue;
      Check(producers_.store->Append(name_, producer, next).status());
      next.clear();
    }
  }

  void Read(int group, int partition, int64_t events) override {
    stream::EventStreamStore* const store = groups_[static_cast<size_t>(group)]->store.get();
    auto reader = store->OpenReader(name_, partition, 1);
    Check(reader.status());
    for (int64_t number = 1; number <= events;) {
      const auto read = (*reader)->Next(stream::kMaxReadEvents, absl::Seconds(30));
      Check(read.status());
      for (const stream::Event& event : *read) CheckBody(event.body, number++);
    }
  }

 private:
  Process producers_;
  std::vector<std::unique_ptr<Process>> groups_;
  std::string name_;
};

}  // namespace

std::unique_ptr<Side> MusterSide(const std::string& url) { return std::make_unique<Muster>(url); }

}  // namespace event_bench
