// SPDX-License-Identifier: Apache-2.0

// What batches cost that are not at work: finished ones in the stores, and open ones that wait for
// results.
//
//   many_batches finished N   with the stored forms of N finished batches
//   many_batches open N       with N batches of a slow job, put and sealed; takes a minute
//
// Prints one line of JSON. A number of 0 gives the figures of an empty mesh. The memory is that of
// a process that has opened the stores, and has not written what is in them.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/backend/backend.h"
#include "muster/base/clock.h"
#include "muster/item/queue_names.h"
#include "muster/job/job_file.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/ledger/rocksdb/batch_codec.h"
#include "muster/ledger/rocksdb/rocksdb_batch_ledger.h"
#include "muster/os/temp_dir.h"
#include "muster/report/report_client.h"
#include "muster/report/sqlite/connection.h"
#include "muster/rocksdb/checked_value.h"
#include "muster/rocksdb/database.h"
#include "rocksdb/write_batch.h"
#include "services/initiator/batch/job_queues.h"
#include "services/initiator/batch/scheduler.h"

namespace muster {
namespace {

constexpr char kJob[] = R"(
name: slow
input: {format: csv, columns: {n: n}}
handler: {linked: slow}
groups:
  - {name: by_key, keys: [key], measures: {lines: int}}
)";
constexpr char kInput[] = "n\n1\n";
constexpr uint64_t kAtOnce = 10'000;

[[noreturn]] void Die(absl::string_view why) {
  std::fprintf(stderr, "many_batches: %.*s\n", static_cast<int>(why.size()), why.data());
  std::_Exit(1);
}

void Check(const absl::Status& status) {
  if (!status.ok()) Die(status.ToString());
}

template <typename T>
T OrDie(absl::StatusOr<T> value) {
  Check(value.status());
  return *std::move(value);
}

double SecondsOf(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

// Of all threads of this process.
double CpuSeconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return SecondsOf(used.ru_utime) + SecondsOf(used.ru_stime);
}

double ResidentMegabytes() {
  std::ifstream statm("/proc/self/statm");
  double size = 0, resident = 0;
  statm >> size >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

template <typename Call>
double Seconds(const Call& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

ledger::Batch BatchOf(uint64_t number, const std::string& input) {
  ledger::Batch batch;
  batch.number = number;
  batch.request_id = absl::StrCat("request-", number);
  batch.job = "slow";
  batch.job_revision = "00112233445566778899aabbccddeeff";
  batch.job_definition = kJob;
  batch.source_path = input;
  batch.source_size = sizeof(kInput) - 1;
  batch.created = absl::Now();
  batch.retention = ledger::Retention();
  return batch;
}

const std::vector<ledger::ItemBoundary>& Items() {
  static const auto* const items =
      new std::vector<ledger::ItemBoundary>{{2, 2, 2, 1, base::Fingerprint("1\n"), false}};
  return *items;
}

// As an older muster wrote them: without an index.
void WriteFinished(const std::string& dir, uint64_t count) {
  using ledger::rocksdb::BatchKey;
  auto database = OrDie(muster::rocksdb::Database::Open(dir, ledger::rocksdb::LedgerDatabase({})));
  for (uint64_t first = 1; first <= count; first += kAtOnce) {
    ::rocksdb::WriteBatch write;
    for (uint64_t number = first; number < std::min(first + kAtOnce, count + 1); ++number) {
      ledger::Batch batch = BatchOf(number, "/in.csv");
      batch.state = ledger::BatchState::kComplete;
      batch.completed = batch.created;
      batch.items = batch.enqueued_items = batch.transactions = 1;
      const std::string key = BatchKey(number);
      write.Put(database->family(ledger::rocksdb::kBatches), key,
                ledger::rocksdb::EncodeRecord(batch));
      write.Put(database->family(ledger::rocksdb::kProgress), key,
                ledger::rocksdb::EncodeProgress(batch));
      write.Put(database->family(ledger::rocksdb::kItems), ledger::rocksdb::ItemsKey(number, 0),
                ledger::rocksdb::EncodeItems(Items()));
      write.Put(database->family(ledger::rocksdb::kRequests), batch.request_id,
                muster::rocksdb::CheckedValue(key));
    }
    Check(database->Write(&write, muster::rocksdb::Durability::kProcess));
  }
}

void WriteCounted(const std::string& path, uint64_t count) {
  using report::sqlite::Connection;
  const auto connection = OrDie(Connection::Open(path, report::sqlite::OpenMode::kWrite));
  Check(connection->Execute("BEGIN"));
  auto batch = OrDie(connection->Prepare(
      "INSERT INTO muster_batch (batch, job, job_revision, items_counted, transactions, "
      "aggregated, attempts, receipt_revision) VALUES (?, 'slow', 'r', 1, 1, 1, 1, 1)"));
  auto receipt =
      OrDie(connection->Prepare("INSERT INTO muster_receipt VALUES (?, 1, 'a receipt', 'sum')"));
  for (uint64_t number = 1; number <= count; ++number) {
    Check(batch.Run(number));
    Check(receipt.Run(number));
  }
  Check(connection->Execute("COMMIT"));
}

// Calls `call` in a process of its own, and answers how long it took: what the call needs of memory
// is not this process's. Call it before there is another thread.
template <typename Call>
double SecondsElsewhere(const Call& call) {
  int ends[2];
  if (pipe(ends) != 0) Die("no pipe");
  const pid_t child = fork();
  if (child < 0) Die("no process");
  if (child == 0) {
    const double seconds = Seconds(call);
    std::_Exit(write(ends[1], &seconds, sizeof(seconds)) == sizeof(seconds) ? 0 : 1);
  }
  double seconds = 0;
  close(ends[1]);
  if (read(ends[0], &seconds, sizeof(seconds)) != sizeof(seconds)) Die("a child has died");
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return seconds;
}

void MeasureFinished(uint64_t count) {
  const os::TempDir dir;
  const backend::DataDirUrls urls(dir.path());
  SecondsElsewhere([&] {
    OrDie(backend::OpenReportStore(urls.report, backend::Mode::kReadWrite, base::RealClock()));
    WriteFinished(dir / "ledger", count);
    WriteCounted(dir / "report.db", count);
  });
  std::unique_ptr<ledger::BatchLedger> ledger;
  const auto open = [&] {
    ledger = OrDie(backend::OpenBatchLedger(urls.ledger, backend::Mode::kReadWrite));
    OrDie(ledger->ListOpen());
  };
  const double first_open = SecondsElsewhere([&] {
    open();
    ledger.reset();
  });
  const double next_open = Seconds(open);
  const auto report =
      OrDie(backend::OpenReportStore(urls.report, backend::Mode::kReadWrite, base::RealClock()));
  report::LocalReportClient client(report.get());
  const double jobs = Seconds([&] { OrDie(OrDie(report->Read())->Jobs()); });
  const double list = Seconds([&] {
    const ledger::BatchPage page = OrDie(ledger->ListBelow(UINT64_MAX, 100));
    std::vector<uint64_t> numbers;
    for (const ledger::Batch& batch : page.batches) numbers.push_back(batch.number);
    OrDie(client.ListProgress(numbers));
  });
  const double first_unknown_job = Seconds([&] { (void)ledger->FindNewestOfJob("never"); });
  const double unknown_job = Seconds([&] { (void)ledger->FindNewestOfJob("never"); });
  std::vector<double> creates;
  for (uint64_t i = 1; i <= 200; ++i) {
    creates.push_back(Seconds([&] {
      OrDie(ledger->HighestNumber());
      (void)ledger->FindByRequestId("another");
      Check(ledger->Create(BatchOf(count + i, "/in.csv"), Items()));
    }));
  }
  std::sort(creates.begin(), creates.end());
  std::printf(
      "{\"finished\":%llu,\"first_open_s\":%.3f,\"open_s\":%.3f,\"jobs_s\":%.3f,\"list_ms\":%.2f,"
      "\"first_unknown_job_s\":%.3f,\"unknown_job_ms\":%.3f,\"create_p50_ms\":%.2f,"
      "\"resident_mb\":%.0f}\n",
      static_cast<unsigned long long>(count), first_open, next_open, jobs, list * 1e3,
      first_unknown_job, unknown_job * 1e3, creates[creates.size() / 2] * 1e3, ResidentMegabytes());
}

void MeasureOpen(uint64_t count) {
  const os::TempDir dir;
  const std::string input = dir / "in.csv";
  std::ofstream(input) << kInput;
  const backend::DataDirUrls urls(dir.path());
  const auto queues = OrDie(backend::OpenQueueStore(
      urls.queue, backend::Mode::kReadWrite, backend::Holders::kInProcess, base::RealClock()));
  const auto job = OrDie(job::ParseJob(kJob, "job.yaml"));
  Check(initiator::batch::CreateQueues(queues.get(), "acme", job));
  queue::NewMessage message;
  message.body = "an item";
  OrDie(queues->Put(item::InputQueue("acme", "slow", 0), {message}));
  const auto ledger = OrDie(backend::OpenBatchLedger(urls.ledger, backend::Mode::kReadWrite));
  const auto record = [&](uint64_t number) {
    Check(ledger->Create(BatchOf(number, input), Items()));
  };
  for (uint64_t number = 1; number <= count; ++number) {
    record(number);
    Check(ledger->MarkEnqueued(number, 1, {}));
    Check(ledger->Seal(number, sizeof(kInput) - 1));
  }
  const auto report =
      OrDie(backend::OpenReportStore(urls.report, backend::Mode::kReadWrite, base::RealClock()));
  report::LocalReportClient client(report.get());
  const auto bus = OrDie(backend::OpenTriggerBus("local:"));
  const auto blobs = OrDie(backend::OpenBlobStore(urls.blobs));
  initiator::batch::EngineDependencies tools;
  tools.stores = {queues.get(), bus.get(), ledger.get(), blobs.get(), base::RealClock()};
  tools.options.account = "acme";
  tools.report_client = &client;
  initiator::batch::BatchScheduler scheduler(tools, {});
  Check(scheduler.Start());
  std::this_thread::sleep_for(std::chrono::seconds(5));
  const double cpu_before = CpuSeconds();
  std::vector<double> firsts;
  const double lapse = Seconds([&] {
    for (uint64_t i = 1; i <= 60; ++i) {
      std::this_thread::sleep_for(std::chrono::seconds(1));
      record(count + i);
      firsts.push_back(Seconds([&] {
        scheduler.Advance(count + i);
        while (OrDie(ledger->Get(count + i)).enqueued_items == 0) {
          std::this_thread::sleep_for(std::chrono::microseconds(200));
        }
      }));
    }
  });
  const double cpu = CpuSeconds() - cpu_before;
  std::sort(firsts.begin(), firsts.end());
  std::printf(
      "{\"open\":%llu,\"core_share\":%.4f,\"first_item_p50_ms\":%.1f,\"first_item_max_ms\":%.1f,"
      "\"resident_mb\":%.0f}\n",
      static_cast<unsigned long long>(count), cpu / lapse, firsts[firsts.size() / 2] * 1e3,
      firsts.back() * 1e3, ResidentMegabytes());
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  uint64_t count = 0;
  if (argc != 3 || !absl::SimpleAtoi(argv[2], &count)) {
    muster::Die("usage: many_batches finished|open N");
  }
  if (absl::string_view(argv[1]) == "finished") {
    muster::MeasureFinished(count);
  } else if (absl::string_view(argv[1]) == "open") {
    muster::MeasureOpen(count);
  } else {
    muster::Die("finished or open");
  }
  return 0;
}
