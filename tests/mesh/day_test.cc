// SPDX-License-Identifier: Apache-2.0

// A simulated day of a whole mesh in one process, on a clock of the test, with the stores of a data
// directory and over NATS servers: jobs come and go, batches are worked through, uploads are
// abandoned, and some files cannot be deleted. What the mesh holds in its last hour, and what the
// NATS server holds for it, is what it was in an early one.
#include <malloc.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "muster/base/decimal.h"
#include "muster/client/batch.h"
#include "muster/handler/handler.h"
#include "muster/input/byte_source.h"
#include "muster/item/queue_names.h"
#include "muster/nats/connection.h"
#include "muster/nats/jetstream.h"
#include "muster/os/temp_dir.h"
#include "muster/report/sqlite/sqlite_report_store.h"
#include "muster/rpc/channel.h"
#include "muster/v1/batch_service.grpc.pb.h"
#include "muster/v1/job_service.grpc.pb.h"
#include "muster/v1/queue_service.grpc.pb.h"
#include "services/host/all_roles/all_roles.h"
#include "services/host/host.h"
#include "services/initiator/batch/source.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/nats/nats_server.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr int kHours = 24;
constexpr int kJobsAnHour = 21;
constexpr int kUploadsAnHour = 210;
constexpr int kUndeletable = 20;  // as many as a step of retention takes: they must hide no other
constexpr int kWarmHours = 4;  // by then caches have their size, and the first batches are deleted

constexpr char kJob[] = R"(
name: NAME
input: {format: lines}
item: {transactions: 20}
handler: {linked: count}
groups:
  - {name: all, keys: [key], measures: {lines: int}}
retention: {content: 30m, items: 1h, batch: 2h}
upload: {expires: 10m}
)";

class CountHandler final : public handler::Handler {
 public:
  handler::Outcome Process(const handler::WorkItem& item, handler::Results& results) override {
    for (const handler::Transaction& line : item.transactions()) {
      results.Count(line, {{handler::Group{0}, {"all"}, {base::Decimal::FromInt(1)}}});
    }
    return handler::Outcome::Ok();
  }
};

// What a process holds, but for RocksDB's tables, whose number compactions bound.
struct Held {
  size_t threads = 0;
  size_t descriptors = 0;
  size_t files = 0;  // in the data directory
  size_t queues = 0;
  size_t streams = 0;  // of the NATS server, as are the next
  size_t consumers = 0;
  size_t messages = 0;
  size_t forgotten_jobs = 0;  // without a batch, of which the report has tables all the same
  size_t heap_bytes = 0;  // most of it RocksDB's memtables, which take days to reach their bounds

  friend std::ostream& operator<<(std::ostream& out, const Held& held) {
    return out << held.threads << " threads, " << held.descriptors << " descriptors, " << held.files
               << " files, " << held.queues << " queues, " << held.streams << " streams, "
               << held.consumers << " consumers, " << held.messages << " messages, "
               << held.forgotten_jobs << " jobs, " << held.heap_bytes / 1024 << " KiB";
  }
};

bool IsTable(const fs::path& file) { return file.extension() == ".sst"; }

size_t Entries(const fs::path& folder) {
  return static_cast<size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

// Where the stores of a mesh are, and how far its clock goes at each step, in which other threads
// run for a moment: while work is under way, and while time alone passes.
struct Place {
  std::string nats_program;  // empty: all in the data directory
  int64_t slow;              // milliseconds
  int64_t fast;
};

std::vector<Place> Places() {
  std::vector<Place> places = {{.nats_program = "", .slow = 20, .fast = 1000}};
  // A server's own clock is the real one, and so an answer of it must be quick by the test's.
  for (const std::string& program : nats::testing::NatsServer::Programs()) {
    places.push_back({.nats_program = program, .slow = 1, .fast = 100});
  }
  return places;
}

class DayTest : public ::testing::TestWithParam<Place> {
 protected:
  DayTest() {
    if (!GetParam().nats_program.empty()) {
      nats_server_.emplace(GetParam().nats_program);
      connection_ = nats::Connection::Open(nats_server_->url(), {}).value();
      jetstream_.emplace(connection_.get(), absl::Seconds(30));
    }
    handlers_.Register(
        {"count", "1", [](const handler::JobSchema&) { return std::make_unique<CountHandler>(); }});
    host::HostOptions options(host::kInitiator);
    options.nats_url = nats_server_.has_value() ? nats_server_->url() : "";
    options.data_dir = dir_.path();
    options.listen = {"127.0.0.1:0"};
    options.log_level = base::kError;
    host::all_roles::RoleOptions role_options;
    // Not lost when the clock outruns an answer of the server.
    role_options.controller.ownership_lease = absl::Minutes(5);
    role_ = std::make_unique<host::all_roles::AllRoles>(&handlers_, options, role_options, &clock_);
    host_ = host::Host::Start(options, role_.get(), &clock_).value();
    channel_ = rpc::OpenChannel(host_->addresses().front()).value();
    serving_ = std::jthread([this](std::stop_token stop) {
      const absl::Status served = host_->Serve(stop);
      EXPECT_TRUE(served.ok()) << served;
    });
    batches_ = v1::BatchService::NewStub(channel_);
    jobs_ = v1::JobService::NewStub(channel_);
    queues_ = v1::QueueService::NewStub(channel_);
    while (!Queues().has_value()) Pass(absl::Seconds(1));
  }

  ~DayTest() override {
    serving_.request_stop();
    serving_.join();  // a drain waits by the clock, too
  }

  // Lets so much time pass, at a high pace.
  void Pass(absl::Duration time) {
    const absl::Duration end = clock_.Monotonic() + time;
    step_ = GetParam().fast;
    while (clock_.Monotonic() < end) base::LetOthersRun();
    step_ = GetParam().slow;
  }

  std::optional<size_t> Queues() {
    rpc::CallContext context;
    v1::ListQueuesRequest request;
    request.set_account(item::kLocalAccount);
    request.set_page_size(1000);
    v1::ListQueuesResponse response;
    if (!queues_->ListQueues(&context, request, &response).ok()) return std::nullopt;
    return static_cast<size_t>(response.queues_size());
  }

  // A batch of the job, from its submit to its receipt.
  void WorkThrough(const std::string& job) {
    ASSERT_NO_FATAL_FAILURE(WorkThrough(job, absl::StrCat("batch of ", job), lines_, nullptr));
  }
  void WorkThrough(const std::string& job, const std::string& request, const std::string& lines,
                   uint64_t* number) {
    v1::SubmitHeader header;
    header.set_job(job);
    header.set_request_id(request);
    const input::TextSource content(lines);
    const auto submitted =
        client::Submit(channel_, header, content, {}, base::RealClock(), std::stop_token());
    ASSERT_TRUE(submitted.ok()) << submitted.status();
    const auto last =
        client::Watch(channel_, submitted->batch(), {}, base::RealClock(), std::stop_token());
    ASSERT_TRUE(last.ok()) << last.status();
    EXPECT_EQ(last->state(), v1::BATCH_STATE_COMPLETE);
    if (number != nullptr) *number = submitted->batch();
  }

  fs::path uploads() const { return fs::path(dir_.path()) / "uploads"; }

  // A batch with an upload in whose place is a folder that is not empty.
  void LeaveUndeletable(const std::string& job, const std::string& request) {
    std::string lines;
    while (lines.size() <= initiator::batch::kMaxInlineContentBytes) lines += lines_;
    uint64_t batch = 0;
    ASSERT_NO_FATAL_FAILURE(WorkThrough(job, request, lines, &batch));
    const fs::path upload = uploads() / absl::StrCat(batch);
    ASSERT_TRUE(fs::remove(upload)) << upload;
    fs::create_directory(upload);
    std::ofstream(upload / "file") << "is in the way";
  }

  // Begins a batch, sends some of its content, and goes away.
  void AbandonUpload(const std::string& job, const std::string& request) {
    grpc::ClientContext context;
    const auto upload = batches_->Submit(&context);
    v1::SubmitRequest step;
    step.mutable_header()->set_job(job);
    step.mutable_header()->set_request_id(request);
    ASSERT_TRUE(upload->Write(step));
    v1::SubmitResponse response;
    ASSERT_TRUE(upload->Read(&response)) << upload->Finish().error_message();
    step.mutable_chunk()->set_data(lines_);
    upload->Write(step);
    context.TryCancel();
  }

  void Apply(const std::string& job) {
    rpc::CallContext context;
    v1::ApplyJobRequest request;
    request.set_definition(absl::StrReplaceAll(kJob, {{"NAME", job}}));
    v1::ApplyJobResponse response;
    const grpc::Status applied = jobs_->ApplyJob(&context, request, &response);
    ASSERT_TRUE(applied.ok()) << applied.error_message();
  }

  void Delete(const std::string& job) {
    rpc::CallContext context;
    v1::DeleteJobRequest request;
    request.set_name(job);
    v1::DeleteJobResponse response;
    const grpc::Status deleted = jobs_->DeleteJob(&context, request, &response);
    ASSERT_TRUE(deleted.ok()) << deleted.error_message();
  }

  Held Look() {
    Held held;
    held.threads = Entries("/proc/self/task");
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      if (!IsTable(fs::read_symlink(entry, gone))) ++held.descriptors;
    }
    for (const auto& entry : fs::recursive_directory_iterator(dir_.path())) {
      if (entry.is_regular_file() && !IsTable(entry)) ++held.files;
    }
    held.queues = Queues().value_or(0);
    if (jetstream_.has_value()) LookAtServer(&held);
    held.forgotten_jobs = report::sqlite::OpenSqliteReport(dir_ / "report.db", {.read_only = true})
                              .value()
                              ->Read()
                              .value()
                              ->JobsWithoutBatches()
                              .value()
                              .size();
    held.heap_bytes = mallinfo2().uordblks;
    return held;
  }

  void LookAtServer(Held* held) {
    while (true) {
      const auto page = jetstream_->ListStreams(held->streams);
      ASSERT_TRUE(page.ok()) << page.status();
      for (const nats::ListedStream& stream : page->streams) {
        ++held->streams;
        held->consumers += static_cast<size_t>(stream.consumers);
        held->messages += stream.state.messages;
      }
      if (page->streams.empty() || held->streams >= page->total) return;
    }
  }

  const std::string lines_ = [] {
    std::string lines;
    for (int i = 0; i < 50; ++i) absl::StrAppend(&lines, "line ", i, "\n");
    return lines;
  }();
  const os::TempDir dir_;
  base::FakeClock clock_;
  handler::HandlerRegistry handlers_;
  std::optional<nats::testing::NatsServer> nats_server_;
  std::unique_ptr<nats::Connection> connection_;
  std::optional<nats::JetStream> jetstream_;
  std::atomic<int64_t> step_ = GetParam().slow;
  std::jthread ticker_{[this](std::stop_token stop) {
    while (!stop.stop_requested()) {
      clock_.Advance(absl::Milliseconds(step_.load()));
      base::LetOthersRun();
    }
  }};
  std::unique_ptr<host::all_roles::AllRoles> role_;
  std::unique_ptr<host::Host> host_;
  std::jthread serving_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::BatchService::Stub> batches_;
  std::unique_ptr<v1::JobService::Stub> jobs_;
  std::unique_ptr<v1::QueueService::Stub> queues_;
};

INSTANTIATE_TEST_SUITE_P(Places, DayTest, ::testing::ValuesIn(Places()), [](const auto& info) {
  return info.index == 0 ? std::string("DataDirectory")
                         : absl::StrCat("NatsServer", info.index - 1);
});

TEST_P(DayTest, LeavesWhatAnEarlyHourLeft) {
  ASSERT_NO_FATAL_FAILURE(Apply("uploads"));
  for (int i = 0; i < kUndeletable; ++i) {
    ASSERT_NO_FATAL_FAILURE(LeaveUndeletable("uploads", absl::StrCat("undeletable ", i)));
  }
  std::vector<Held> hours;
  for (int hour = 0; hour < kHours; ++hour) {
    for (int i = 0; i < kJobsAnHour; ++i) {
      const std::string job = absl::StrCat("job-", hour, "-", i);
      ASSERT_NO_FATAL_FAILURE(Apply(job));
      ASSERT_NO_FATAL_FAILURE(WorkThrough(job));
      ASSERT_NO_FATAL_FAILURE(Delete(job));
    }
    for (int i = 0; i < kUploadsAnHour; ++i) {
      ASSERT_NO_FATAL_FAILURE(AbandonUpload("uploads", absl::StrCat("upload ", hour, " ", i)));
    }
    Pass(absl::Hours(1));
    // An hour of the clock may be shorter than what the disk has to do in it.
    while (Entries(uploads()) > kUndeletable) base::LetOthersRun();
    hours.push_back(Look());
    std::cout << "hour " << hour << ": " << hours.back() << std::endl;
  }
  const Held& early = hours[kWarmHours];
  const Held& late = hours.back();
  EXPECT_LE(late.threads, early.threads + 4);
  EXPECT_LE(late.descriptors, early.descriptors + 10);
  EXPECT_LE(late.queues, early.queues);
  EXPECT_LE(late.streams, early.streams);
  EXPECT_LE(late.consumers, early.consumers);
  EXPECT_LE(late.messages, early.messages + 100);
  EXPECT_LE(late.files, early.files + 20);
  // The write buffers of RocksDB fill meanwhile. 2 KiB for each job and upload would be as much.
  EXPECT_LE(late.heap_bytes, early.heap_bytes + (size_t{8} << 20));
  // Those whose batches went since the controller looked last.
  EXPECT_LE(late.forgotten_jobs, kJobsAnHour);
}

}  // namespace
}  // namespace muster
