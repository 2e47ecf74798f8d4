#include "muster/batch_remote/upload_stream.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "muster/base/mutex.h"
#include "muster/rpc/channel.h"
#include "muster/rpc/server.h"

namespace muster::batch_remote {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
// As BatchService.Submit asks of its clients.
constexpr uint64_t kAhead = 8 * kMiB;

using ServerSide = grpc::ServerReaderWriter<v1::SubmitResponse, v1::SubmitRequest>;

// An initiator whose disk is so slow that it acknowledges a MiB only when its client has run as far
// ahead as it may.
class SlowInitiator final : public v1::BatchService::Service {
 public:
  explicit SlowInitiator(uint64_t durable) : durable_(durable) {}

  grpc::Status Submit(grpc::ServerContext*, ServerSide* stream) override {
    v1::SubmitRequest request;
    stream->Read(&request);  // the header
    v1::SubmitResponse response;
    response.mutable_accepted()->set_batch(1);
    response.mutable_accepted()->set_durable_offset(durable_);
    stream->Write(response);
    while (stream->Read(&request) && request.has_chunk()) {
      Note(request.chunk().offset());
      const uint64_t end = request.chunk().offset() + request.chunk().data().size();
      if (end >= durable_ + kAhead) Acknowledge(durable_ + kMiB, stream);
    }
    if (!request.has_seal()) return grpc::Status::OK;
    response.mutable_sealed()->mutable_status()->set_batch(1);
    stream->Write(response);
    return grpc::Status::OK;
  }

  uint64_t durable() const { return durable_; }
  // Of the chunks.
  std::vector<uint64_t> offsets() {
    base::MutexLock lock(&mu_);
    return offsets_;
  }

 private:
  void Note(uint64_t offset) {
    base::MutexLock lock(&mu_);
    offsets_.push_back(offset);
  }
  // Known here before anybody hears of it.
  void Acknowledge(uint64_t durable, ServerSide* stream) {
    durable_ = durable;
    v1::SubmitResponse response;
    response.mutable_durable()->set_durable_offset(durable);
    stream->Write(response);
  }

  std::atomic<uint64_t> durable_;
  base::Mutex mu_;
  std::vector<uint64_t> offsets_ ABSL_GUARDED_BY(mu_);
};

// Notes how far ahead of what is durable it was read.
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
  mutable uint64_t most_ahead_ = 0;       // of the one thread that reads
};

// What is seen of an upload of `size` bytes of which `durable` are there already.
struct Seen {
  absl::Status status;
  bool sealed = false;
  uint64_t most_ahead = 0;
  std::vector<uint64_t> offsets;  // of the chunks
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
  seen.sealed = stream.sealed().has_value();
  seen.most_ahead = source.most_ahead();
  seen.offsets = initiator.offsets();
  return seen;
}

TEST(UploadStreamTest, RunsEightMiBAheadOfWhatIsDurableAndNoFurther) {
  const Seen seen = Upload(32 * kMiB, 0);
  EXPECT_TRUE(seen.status.ok()) << seen.status;
  EXPECT_TRUE(seen.sealed);
  EXPECT_EQ(seen.offsets.size(), 32U);
  EXPECT_EQ(seen.most_ahead, kAhead);
}

TEST(UploadStreamTest, CountsFromWhereItGoesOnHowFarAheadItIs) {
  const Seen seen = Upload(32 * kMiB + 5, 12 * kMiB);
  EXPECT_TRUE(seen.status.ok()) << seen.status;
  EXPECT_TRUE(seen.sealed);
  ASSERT_EQ(seen.offsets.size(), 21U);
  EXPECT_EQ(seen.offsets.front(), 12 * kMiB);
  EXPECT_EQ(seen.offsets.back(), 32 * kMiB);
  EXPECT_EQ(seen.most_ahead, kAhead);
}

}  // namespace
}  // namespace muster::batch_remote
