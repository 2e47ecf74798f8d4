// SPDX-License-Identifier: Apache-2.0
#include "bench/rival/pipeline.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <iterator>
#include <thread>
#include <vector>

#include "bench/retail/totals.h"
#include "bench/rival/client.h"
#include "bench/rival/partial.h"
#include "bench/rival/report.h"

namespace rival {
namespace {

constexpr char kItems[] = "items";
constexpr char kResults[] = "results";
// The number of unacknowledged messages; a message of 500 lines has some 45 KB.
constexpr int64_t kWindow = 256;
constexpr int kFetch = 64;
// The number of results that share a transaction. A commit has the cost of its syncs, however few
// results it has, so the first result waits a while for others.
constexpr int kMaxCommit = 512;
constexpr auto kLinger = std::chrono::milliseconds(50);
constexpr int64_t kGatherMs = 5;
constexpr int64_t kBatchPatienceMs = 100;

// Cuts a text into pieces of whole records: a line feed within quotes does not end a record.
class Slicer {
 public:
  Slicer(absl::string_view text, int lines) : rest_(text), lines_(lines) {}

  // Returns "" at the end.
  absl::string_view Next() {
    size_t end = 0;
    bool quoted = false;
    for (int lines = 0; lines < lines_ && end < rest_.size();) {
      const size_t line_end = std::min(rest_.find('\n', end), rest_.size() - 1) + 1;
      const auto quotes = std::count(rest_.begin() + end, rest_.begin() + line_end, '"');
      quoted ^= quotes % 2 != 0;
      if (!quoted) ++lines;
      end = line_end;
    }
    const absl::string_view slice = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return slice;
  }

 private:
  absl::string_view rest_;
  const int lines_;
};

class Worker {
 public:
  Worker(const PipelineOptions& options, bench::Columns columns)
      : client_(options.server, kWindow),
        items_(client_.Consume(kItems, kFetch)),
        columns_(columns),
        bill_(options.bill) {}

  void Start() {
    thread_ = std::thread([this] { Run(); });
  }
  void Stop() {
    stopping_ = true;
    thread_.join();
  }

 private:
  void Run() {
    while (!stopping_) {
      std::vector<Message> items = items_.Fetch(kBatchPatienceMs);
      for (const Message& item : items) client_.Publish(kResults, WorkOn(item));
      if (!items.empty()) client_.AwaitStored();
      for (Message& item : items) item.Ack();
    }
  }

  std::string WorkOn(const Message& item) const {
    bench::CsvReader reader(item.data());
    if (bill_) {
      bench::Biller biller(&reader, columns_);
      return EncodePartial(item.sequence(), biller.Run());
    }
    bench::Totals totals;
    std::array<absl::string_view, bench::kMaxFields> fields;
    while (reader.Next(&fields) > 0) ++totals.transactions;
    return EncodePartial(item.sequence(), totals);
  }

  Client client_;
  Consumer items_;
  const bench::Columns columns_;
  const bool bill_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

// Shared by the producer and the aggregator.
struct Upload {
  std::atomic<int64_t> items = -1;  // known at the end of the upload
};

void Produce(const PipelineOptions& options, absl::string_view records, Upload* upload) {
  Client client(options.server, kWindow);
  Slicer slicer(records, options.lines);
  int64_t items = 0;
  for (absl::string_view slice = slicer.Next(); !slice.empty(); slice = slicer.Next()) {
    client.Publish(kItems, slice);
    ++items;
  }
  client.AwaitStored();
  upload->items = items;
}

bool IsLast(const Upload& upload, int64_t items) {
  return upload.items >= 0 && items >= upload.items;
}

// Returns the messages that have arrived, and those that arrive within the linger; empty when none
// has arrived.
std::vector<Message> Gather(Consumer* results, const Upload& upload, int64_t counted) {
  std::vector<Message> messages = results->Fetch(kBatchPatienceMs);
  const auto end = std::chrono::steady_clock::now() + kLinger;
  while (!messages.empty() && messages.size() < kMaxCommit &&
         !IsLast(upload, counted + static_cast<int64_t>(messages.size())) &&
         std::chrono::steady_clock::now() < end) {
    std::vector<Message> more = results->Fetch(kGatherMs);
    std::move(more.begin(), more.end(), std::back_inserter(messages));
  }
  return messages;
}

void Aggregate(Consumer* results, const Upload& upload, Report* report) {
  while (!IsLast(upload, report->items())) {
    std::vector<Message> messages = Gather(results, upload, report->items());
    if (messages.empty()) continue;
    std::vector<absl::string_view> partials;
    partials.reserve(messages.size());
    for (const Message& message : messages) partials.push_back(message.data());
    report->Add(partials);
    for (Message& message : messages) message.Ack();
  }
}

// The text behind the header, and the places of the columns in the header.
struct Input {
  absl::string_view records;
  bench::Columns columns;
};

Input OpenInput(const PipelineOptions& options) {
  const absl::string_view text = bench::MapFile(options.input.c_str());
  if (!options.bill) return {text, {}};
  const size_t header_end = std::min(text.find('\n'), text.size() - 1) + 1;
  bench::CsvReader header(text.substr(0, header_end));
  return {text.substr(header_end), bench::FindColumns(&header)};
}

}  // namespace

PipelineFigures RunPipeline(const PipelineOptions& options) {
  Client client(options.server, kWindow);
  client.MakeStream(kItems, kItems);
  client.MakeStream(kResults, kResults);
  Consumer results = client.Consume(kResults, kMaxCommit);
  Report report(options.report);

  const auto start = std::chrono::steady_clock::now();
  const Input input = OpenInput(options);
  std::deque<Worker> workers;
  for (int i = 0; i < options.workers; ++i) workers.emplace_back(options, input.columns).Start();
  Upload upload;
  std::thread producer([&] { Produce(options, input.records, &upload); });
  Aggregate(&results, upload, &report);
  const std::chrono::duration<double> lapse = std::chrono::steady_clock::now() - start;

  producer.join();
  for (Worker& worker : workers) worker.Stop();
  return {report.items(), report.transactions(), report.rejected(), lapse.count(),
          report.GroupsJson()};
}

}  // namespace rival
