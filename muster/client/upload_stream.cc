// SPDX-License-Identifier: Apache-2.0
#include "muster/client/upload_stream.h"

#include <algorithm>
#include <string>
#include <utility>

#include "muster/base/status.h"
#include "muster/rpc/status.h"

namespace muster::client {
namespace {

// As BatchService.Submit takes them.
constexpr uint64_t kChunkBytes = uint64_t{1} << 20;
constexpr uint64_t kAheadBytes = uint64_t{8} << 20;

}  // namespace

absl::StatusOr<base::Fingerprint128> ContentHash::Whole() {
  std::string piece;
  while (hashed_ < content_->size()) {
    piece.resize(std::min(kChunkBytes, content_->size() - hashed_));
    MUSTER_ASSIGN_OR_RETURN(const size_t got, content_->Read(hashed_, piece.data(), piece.size()));
    Note(hashed_, absl::string_view(piece.data(), got));
  }
  return hash_.Digest();
}

void ContentHash::Note(uint64_t offset, absl::string_view data) {
  if (offset != hashed_) return;  // it was seen before, or what is before it was not
  hash_.Update(data);
  hashed_ += data.size();
}

namespace {

// The call leaves with its first message, not ahead of it.
std::unique_ptr<UploadStream::Stream> Begin(v1::BatchService::Stub* stub,
                                            grpc::ClientContext* context) {
  context->set_initial_metadata_corked(true);
  return stub->Submit(context);
}

// How a message is written that the next one follows at once: together with it, while both are
// short.
grpc::WriteOptions Gathered(bool gathers) {
  return gathers ? grpc::WriteOptions().set_buffer_hint() : grpc::WriteOptions();
}

}  // namespace

UploadStream::UploadStream(v1::BatchService::Stub* stub, const input::ByteSource* content,
                           ContentHash* hash, OnDurable on_durable)
    : content_(content),
      hash_(hash),
      on_durable_(std::move(on_durable)),
      stream_(Begin(stub, &context_)),
      receiver_([this] { Receive(); }) {}

UploadStream::~UploadStream() {
  context_.TryCancel();
  if (receiver_.joinable()) receiver_.join();
}

absl::Status UploadStream::Run(const v1::SubmitHeader& header, bool at_once,
                               const std::stop_token& stop) {
  const std::stop_callback cancel(stop, [this] { context_.TryCancel(); });
  v1::SubmitRequest request;
  *request.mutable_header() = header;
  const bool is_one_chunk = content_->size() > 0 && content_->size() <= kChunkBytes;
  const bool gathers = at_once && is_one_chunk;
  request.mutable_header()->set_at_once(gathers);
  absl::Status sent;
  if (stream_->Write(request, Gathered(gathers))) {
    if (const auto offset = WhereToBegin(gathers); offset.has_value()) {
      sent = SendContent(*offset, gathers);
    }
  }
  if (!sent.ok()) context_.TryCancel();  // the input cannot be read
  receiver_.join();
  const absl::Status ended = rpc::FromGrpc(stream_->Finish());
  return sent.ok() ? ended : sent;
}

absl::Status UploadStream::SendContent(uint64_t offset, bool gathers) {
  v1::SubmitRequest request;
  while (offset < content_->size()) {
    if (!AwaitRoom(offset)) return absl::OkStatus();
    std::string* const data = request.mutable_chunk()->mutable_data();
    data->resize(std::min(kChunkBytes, content_->size() - offset));
    MUSTER_ASSIGN_OR_RETURN(const size_t got, content_->Read(offset, data->data(), data->size()));
    data->resize(got);
    hash_->Note(offset, *data);
    request.mutable_chunk()->set_offset(offset);
    if (!stream_->Write(request, Gathered(gathers))) return absl::OkStatus();
    offset += got;
  }
  MUSTER_ASSIGN_OR_RETURN(const base::Fingerprint128 hash, hash_->Whole());
  request.mutable_seal()->set_size(content_->size());
  request.mutable_seal()->set_content_hash(hash.ToBytes());
  stream_->WriteLast(request, grpc::WriteOptions());
  return absl::OkStatus();
}

std::optional<uint64_t> UploadStream::WhereToBegin(bool at_once) {
  return at_once ? 0 : AwaitAccepted();
}

std::optional<uint64_t> UploadStream::AwaitAccepted() {
  base::MutexLock lock(&mu_);
  while (!ended_ && !accepted_at_.has_value()) changed_.Wait(&mu_);
  return accepted_at_;
}

bool UploadStream::AwaitRoom(uint64_t sent) {
  base::MutexLock lock(&mu_);
  while (!ended_ && sent >= durable_ + kAheadBytes) changed_.Wait(&mu_);
  return !ended_;
}

void UploadStream::Receive() {
  v1::SubmitResponse response;
  bool complete = false;
  while (stream_->Read(&response)) {
    uint64_t durable = 0;
    if (response.has_accepted()) {
      batch_ = response.accepted().batch();
      durable = response.accepted().durable_offset();
      complete = response.accepted().state() == v1::BATCH_STATE_COMPLETE;
    } else if (response.has_durable()) {
      durable = response.durable().durable_offset();
    } else if (response.has_sealed()) {
      sealed_ = response.sealed().status();
      continue;
    }
    if (!on_durable_(batch_, durable, complete)) context_.TryCancel();
    base::MutexLock lock(&mu_);
    if (response.has_accepted()) accepted_at_ = durable;
    durable_ = std::max(durable_, durable);
    changed_.NotifyAll();
  }
  base::MutexLock lock(&mu_);
  ended_ = true;
  changed_.NotifyAll();
}

}  // namespace muster::client
