// SPDX-License-Identifier: Apache-2.0

// A client of the mesh for mesh_bench.
//
//   mesh_client apply INITIATOR JOB.yaml           makes the job
//   mesh_client submit INITIATOR JOB INPUT         submits it and waits until it is complete
//   mesh_client batches INITIATOR JOB BATCHES      submits so many batches of one line, by 16
//   callers,
//                                                  and waits until all are complete
//   mesh_client latency INITIATOR JOB SAMPLES      submits one line at a time to an idle mesh;
//                                                  prints the time of each submit
//
// INITIATOR is HOST:PORT. Prints JSON. Times are from before the call of Submit.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "muster/base/clock.h"
#include "muster/base/in_parallel.h"
#include "muster/base/names.h"
#include "muster/client/batch.h"
#include "muster/input/byte_source.h"
#include "muster/rpc/channel.h"
#include "muster/v1/batch_service.grpc.pb.h"
#include "muster/v1/job_service.grpc.pb.h"

namespace {

namespace v1 = muster::v1;

constexpr uint32_t kSeed = 20101201;  // the gaps are the same in every run, and in the rival's
constexpr int kMinGapMs = 100;
constexpr int kMaxGapMs = 1000;
constexpr size_t kCallers = 16;

using Channel = std::shared_ptr<grpc::Channel>;

[[noreturn]] void Die(absl::string_view what) {
  std::fprintf(stderr, "mesh_client: %.*s\n", static_cast<int>(what.size()), what.data());
  std::exit(1);  // NOLINT(concurrency-mt-unsafe): nothing is to be cleaned up
}

void Check(const grpc::Status& status, absl::string_view what) {
  if (!status.ok()) Die(absl::StrCat(what, ": ", status.error_message()));
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  if (!(text << file.rdbuf())) Die(absl::StrCat("cannot read ", path));
  return std::move(text).str();
}

uint64_t Submit(const Channel& channel, const std::string& job,
                const muster::input::ByteSource& content) {
  v1::SubmitHeader header;
  header.set_job(job);
  header.set_request_id(muster::base::MakeInstanceId("bench"));
  header.set_always_new(true);
  const absl::StatusOr<v1::BatchStatus> submitted =
      muster::client::Submit(channel, header, content, {}, muster::base::RealClock(), {});
  if (!submitted.ok()) Die(submitted.status().message());
  return submitted->batch();
}

v1::BatchStatus AwaitEnd(const Channel& channel, uint64_t batch) {
  grpc::ClientContext context;
  v1::WatchBatchRequest request;
  request.set_batch(batch);
  const auto stream = v1::BatchService::NewStub(channel)->WatchBatch(&context, request);
  v1::WatchBatchResponse last, response;
  while (stream->Read(&response)) last = response;
  Check(stream->Finish(), "watching");
  if (!last.status().complete()) Die("the batch was cancelled");
  return last.status();
}

void Apply(const Channel& channel, const std::string& path) {
  muster::rpc::CallContext context;
  v1::ApplyJobRequest request;
  request.set_definition(ReadFile(path));
  v1::ApplyJobResponse response;
  Check(v1::JobService::NewStub(channel)->ApplyJob(&context, request, &response), "apply");
}

void SubmitFile(const Channel& channel, const std::string& job, const std::string& path) {
  const auto file = muster::input::FileSource::Open(path);
  if (!file.ok()) Die(file.status().message());
  const auto start = std::chrono::steady_clock::now();
  const uint64_t batch = Submit(channel, job, **file);
  const std::chrono::duration<double> uploaded = std::chrono::steady_clock::now() - start;
  const v1::BatchStatus status = AwaitEnd(channel, batch);
  const std::chrono::duration<double> lapse = std::chrono::steady_clock::now() - start;
  std::puts(absl::StrCat(
                "{\"batch\":", batch, ",\"items\":", status.items(),
                ",\"transactions\":", status.transactions(), ",\"rejected\":", status.rejected(),
                ",\"duplicates_dropped\":", status.duplicates_dropped(), ",\"uploaded_seconds\":",
                uploaded.count(), ",\"seconds\":", lapse.count(), ",\"transactions_per_second\":",
                static_cast<int64_t>(static_cast<double>(status.transactions()) / lapse.count()),
                "}")
                .c_str());
}

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void SubmitMany(const Channel& channel, const std::string& job, size_t batches) {
  std::vector<uint64_t> numbers(batches);
  const auto start = std::chrono::steady_clock::now();
  muster::base::InParallel(batches, kCallers, [&](size_t i) {
    numbers[i] = Submit(channel, job, muster::input::TextSource(absl::StrCat(i, "\n")));
  });
  const double submitted = SecondsSince(start);
  for (const uint64_t number : numbers) AwaitEnd(channel, number);
  const double all = SecondsSince(start);
  std::puts(absl::StrCat("{\"batches\":", batches, ",\"submitted_seconds\":", submitted,
                         ",\"seconds\":", all,
                         ",\"batches_per_second\":", static_cast<double>(batches) / all, "}")
                .c_str());
}

void SubmitNow(const Channel& channel, const std::string& job) {
  const std::string line =
      absl::StrCat(std::chrono::steady_clock::now().time_since_epoch().count(), "\n");
  AwaitEnd(channel, Submit(channel, job, muster::input::TextSource(line)));
}

void Latency(const Channel& channel, const std::string& job, int samples) {
  std::minstd_rand random(kSeed);
  std::uniform_int_distribution<int> gap_ms(kMinGapMs, kMaxGapMs);
  for (int i = 0; i < samples; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(gap_ms(random)));
    SubmitNow(channel, job);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() < 3) Die("usage: apply|submit|batches|latency INITIATOR …");
  const absl::StatusOr<Channel> channel = muster::rpc::OpenChannel(words[1]);
  if (!channel.ok()) Die(channel.status().message());
  if (words[0] == "apply" && words.size() == 3) {
    Apply(*channel, words[2]);
  } else if (words[0] == "submit" && words.size() == 4) {
    SubmitFile(*channel, words[2], words[3]);
  } else if (words[0] == "batches" && words.size() == 4) {
    SubmitMany(*channel, words[2], static_cast<size_t>(std::atoi(words[3].c_str())));
  } else if (words[0] == "latency" && words.size() == 4) {
    Latency(*channel, words[2], std::atoi(words[3].c_str()));
  } else {
    Die("usage: apply|submit|batches|latency INITIATOR …");
  }
  return 0;
}
