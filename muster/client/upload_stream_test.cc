// SPDX-License-Identifier: Apache-2.0
#include "muster/client/upload_stream.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/client/batch.h"
#include "muster/rpc/channel.h"
#include "muster/rpc/server.h"

namespace muster::client {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
// The limit that BatchService.Submit sets for its clients.
constexpr uint64_t kAhead = 8 * kMiB;

// Even the slowest machine sends an allowed chunk in less time.
constexpr absl::Duration kTestTimeout = absl::Minutes(1);

using ServerSide = grpc::ServerReaderWriter<v1::SubmitResponse, v1::SubmitRequest>;

// Cancels a call without traffic for kTestTimeout: otherwise a client and a server that wait for
// each other would wait for ever.
class StallGuard {
 public:
  explicit StallGuard(grpc::ServerContext* call) : call_(call) {}
  ~StallGuard() {
    base::MutexLock lock(&mu_);
    over_ = true;
    changed_.NotifyAll();
  }

  void Heard() {
    base::MutexLock lock(&mu_);
    patience_ends_ = base::RealClock()->Monotonic() + kTestTimeout;
  }
  bool stalled() {
    base::MutexLock lock(&mu_);
    return stalled_;
  }

 private:
  void Watch() {
    base::MutexLock lock(&mu_);
    while (!over_ && base::RealClock()->Monotonic() < patience_ends_) {
      base::RealClock()->WaitUntil(&changed_, &mu_, patience_ends_);
    }
    if (over_) return;
    stalled_ = true;
    call_->TryCancel();
  }

  grpc::ServerContext* const call_;  // not owned
  base::Mutex mu_;
  base::CondVar changed_;
  absl::Duration patience_ends_ ABSL_GUARDED_BY(mu_) =
      base::RealClock()->Monotonic() + kTestTimeout;
  bool over_ ABSL_GUARDED_BY(mu_) = false;
  bool stalled_ ABSL_GUARDED_BY(mu_) = false;
  std::jthread watcher_{[this] { Watch(); }};  // last: it uses the others
};

// An initiator with a slow disk: it acknowledges a MiB only when its client has used its whole
// allowance of unacknowledged bytes.
class SlowInitiator final : public v1::BatchService::Service {
 public:
  explicit SlowInitiator(uint64_t durable) : durable_(durable) {}

  grpc::Status Submit(grpc::ServerContext* context, ServerSide* stream) override {
    StallGuard guard(context);
    v1::SubmitRequest request;
    stream->Read(&request);  // the header
    v1::SubmitResponse response;
    response.mutable_accepted()->set_batch(1);
    response.mutable_accepted()->set_durable_offset(durable_);
    stream->Write(response);
    while (stream->Read(&request) && request.has_chunk()) {
      guard.Heard();
      Note(request.chunk().offset());
      const uint64_t end = request.chunk().offset() + request.chunk().data().size();
      if (end >= durable_ + kAhead) Acknowledge(durable_ + kMiB, stream);
    }
    if (guard.stalled()) Complain();
    if (!request.has_seal()) return grpc::Status::OK;
    response.mutable_sealed()->mutable_status()->set_batch(1);
    stream->Write(response);
    return grpc::Status::OK;
  }

  uint64_t durable() const { return durable_; }
  // Describes a wait of the client that the protocol does not allow; empty if there was none.
  std::string complaint() {
    base::MutexLock lock(&mu_);
    return complaint_;
  }
  // The offsets of the chunks.
  std::vector<uint64_t> offsets() {
    base::MutexLock lock(&mu_);
    return offsets_;
  }

 private:
  void Complain() {
    base::MutexLock lock(&mu_);
    const uint64_t sent = offsets_.empty() ? durable_.load() : offsets_.back() + kMiB;
    complaint_ = absl::StrCat("the client waits ", sent - durable_,
                              " bytes ahead of what is durable, and may run ", kAhead, " ahead");
  }
  void Note(uint64_t offset) {
    base::MutexLock lock(&mu_);
    offsets_.push_back(offset);
  }
  // Updates durable_ before the client can receive the acknowledgement.
  void Acknowledge(uint64_t durable, ServerSide* stream) {
    durable_ = durable;
    v1::SubmitResponse response;
    response.mutable_durable()->set_durable_offset(durable);
    stream->Write(response);
  }

  std::atomic<uint64_t> durable_;
  base::Mutex mu_;
  std::vector<uint64_t> offsets_ ABSL_GUARDED_BY(mu_);
  std::string complaint_ ABSL_GUARDED_BY(mu_);
};

// Records the furthest read beyond the durable bytes.
class WatchedSource final : public input::ByteSource {
 public:
  WatchedSource(uint64_t size, const SlowInitiator* initiator)
      : size_(size), initiator_(initiator) {}

  uint64_t size() const override { return size_; }
  absl::StatusOr<size_t> Read(uint64_t offset, char* out, size_t bytes) const override {
    std::memset(out, 'x', bytes);
    const uint64_t end = offset + bytes;
    most_ahead_ = std::max(most_ahead_, end - std::min(end, initiator_->durable()));
    return bytes;
  }

  uint64_t most_ahead() const { return most_ahead_; }

 private:
  const uint64_t size_;
  const SlowInitiator* const initiator_;  // not owned
  mutable uint64_t most_ahead_ = 0;       // used only by the thread that reads
};

// The observations of an upload of `size` bytes, `durable` of which are on disk already.
struct Seen {
  absl::Status status;
  std::string complaint;
  bool sealed = false;
  uint64_t most_ahead = 0;
  std::vector<uint64_t> offsets;  // the offsets of the chunks
};

Seen Upload(uint64_t size, uint64_t durable) {
  SlowInitiator initiator(durable);
  rpc::ServerOptions options;
  options.addresses = {"localhost:0"};
  const auto server =
      rpc::Server::Start(options, {{v1::BatchService::service_full_name(), &initiator}}).value();
  const auto stub =
      v1::BatchService::NewStub(rpc::OpenChannel(server->addresses().front()).value());
  const WatchedSource source(size, &initiator);
  ContentHash hash(&source);
  UploadStream stream(stub.get(), &source, &hash, [](uint64_t, uint64_t, bool) { return true; });
  Seen seen;
  seen.status = stream.Run(v1::SubmitHeader(), /*at_once=*/false, {});
  seen.complaint = initiator.complaint();
  seen.sealed = stream.sealed().has_value();
  seen.most_ahead = source.most_ahead();
  seen.offsets = initiator.offsets();
  return seen;
}

TEST(UploadStreamTest, RunsEightMiBAheadOfWhatIsDurableAndNoFurther) {
  const Seen seen = Upload(32 * kMiB, 0);
  EXPECT_TRUE(seen.status.ok()) << seen.status;
  EXPECT_EQ(seen.complaint, "");
  EXPECT_TRUE(seen.sealed);
  EXPECT_EQ(seen.offsets.size(), 32U);
  EXPECT_EQ(seen.most_ahead, kAhead);
}

TEST(UploadStreamTest, CountsFromWhereItGoesOnHowFarAheadItIs) {
  const Seen seen = Upload(32 * kMiB + 5, 12 * kMiB);
  EXPECT_TRUE(seen.status.ok()) << seen.status;
  EXPECT_EQ(seen.complaint, "");
  EXPECT_TRUE(seen.sealed);
  ASSERT_EQ(seen.offsets.size(), 21U);
  EXPECT_EQ(seen.offsets.front(), 12 * kMiB);
  EXPECT_EQ(seen.offsets.back(), 32 * kMiB);
  EXPECT_EQ(seen.most_ahead, kAhead);
}

// An initiator with a failing disk: it accepts each header, and makes nothing durable.
class FailingInitiator final : public v1::BatchService::Service {
 public:
  grpc::Status Submit(grpc::ServerContext*, ServerSide* stream) override {
    v1::SubmitRequest request;
    stream->Read(&request);
    v1::SubmitResponse response;
    response.mutable_accepted()->set_batch(1);
    stream->Write(response);
    stream->Read(&request);
    return {grpc::StatusCode::UNAVAILABLE, "writing the upload: Input/output error"};
  }
};

TEST(UploadStreamTest, GivesUpWhereTheInitiatorAcceptsAndMakesNothingDurable) {
  FailingInitiator initiator;
  rpc::ServerOptions options;
  options.addresses = {"localhost:0"};
  const auto server =
      rpc::Server::Start(options, {{v1::BatchService::service_full_name(), &initiator}}).value();
  const auto channel = rpc::OpenChannel(server->addresses().front()).value();
  SubmitOptions hasty;
  hasty.patience = absl::ZeroDuration();
  const auto submitted =
      Submit(channel, v1::SubmitHeader(), input::TextSource("1\n"), hasty, base::RealClock(), {});
  EXPECT_TRUE(absl::IsUnavailable(submitted.status())) << submitted.status();
}

}  // namespace
}  // namespace muster::client
