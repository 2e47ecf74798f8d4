// SPDX-License-Identifier: Apache-2.0

// UploadStream: one stream of BatchService.Submit, from the client's side.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>

#include "absl/status/status.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/sync_stream.h"
#include "muster/base/fingerprint.h"
#include "muster/base/mutex.h"
#include "muster/input/byte_source.h"
#include "muster/v1/batch_service.grpc.pb.h"

namespace muster::client {

// The hash of a content's beginning, across all streams that send it.
class ContentHash {
 public:
  // `content` is not owned.
  explicit ContentHash(const input::ByteSource* content) : content_(content) {}

  // The hash of the whole content.
  absl::StatusOr<base::Fingerprint128> Whole();
  // Hashes `data`, which lies at `offset` of the content and so need not be read again.
  void Note(uint64_t offset, absl::string_view data);

 private:
  const input::ByteSource* const content_;  // not owned
  base::Fingerprinter hash_;
  uint64_t hashed_ = 0;
};

// One thread sends, another receives how much is durable.
class UploadStream {
 public:
  using Stream = grpc::ClientReaderWriter<v1::SubmitRequest, v1::SubmitResponse>;
  using OnDurable = std::function<bool(uint64_t batch, uint64_t durable, bool complete)>;

  // Nothing is owned. `on_durable` is called on the stream's own thread; when it answers false the
  // stream is given up.
  UploadStream(v1::BatchService::Stub* stub, const input::ByteSource* content, ContentHash* hash,
               OnDurable on_durable);
  ~UploadStream();
  UploadStream(const UploadStream&) = delete;
  UploadStream& operator=(const UploadStream&) = delete;

  // Sends the content from where the initiator has it, and seals it. With `at_once` all of a
  // content that is one chunk is sent behind the header, without asking where to begin, and what is
  // short goes with it, in one piece: the initiator wakes once for all of it. OutOfRange when the
  // initiator has some of it. The stream's status; called once.
  absl::Status Run(const v1::SubmitHeader& header, bool at_once, const std::stop_token& stop)
      ABSL_LOCKS_EXCLUDED(mu_);

  // The status that answered the seal; nullopt: no answer came.
  const std::optional<v1::BatchStatus>& sealed() const { return sealed_; }

 private:
  void Receive() ABSL_LOCKS_EXCLUDED(mu_);
  // Where to begin; nullopt: the stream has ended.
  std::optional<uint64_t> AwaitAccepted() ABSL_LOCKS_EXCLUDED(mu_);
  std::optional<uint64_t> WhereToBegin(bool at_once) ABSL_LOCKS_EXCLUDED(mu_);
  // False: the stream has ended.
  bool AwaitRoom(uint64_t sent) ABSL_LOCKS_EXCLUDED(mu_);
  // `gathers`: the whole content is one chunk, whose messages may leave together.
  absl::Status SendContent(uint64_t offset, bool gathers) ABSL_LOCKS_EXCLUDED(mu_);

  const input::ByteSource* const content_;  // not owned
  ContentHash* const hash_;                 // not owned
  const OnDurable on_durable_;
  grpc::ClientContext context_;
  const std::unique_ptr<Stream> stream_;

  base::Mutex mu_;
  base::CondVar changed_;
  std::optional<uint64_t> accepted_at_ ABSL_GUARDED_BY(mu_);
  uint64_t durable_ ABSL_GUARDED_BY(mu_) = 0;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;

  // Owned by the receiving thread until it has ended.
  uint64_t batch_ = 0;
  std::optional<v1::BatchStatus> sealed_;
  std::thread receiver_;
};

}  // namespace muster::client
