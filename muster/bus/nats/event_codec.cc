#include "muster/bus/nats/event_codec.h"

#include <limits>
#include <variant>

#include "absl/strings/str_cat.h"
#include "muster/bus/work_detected.h"
#include "muster/nats/subject.h"
#include "muster/v1/trigger.pb.h"

namespace muster::bus::nats {
namespace {

using Event = bus::InterRoleCommunicationEvent;

struct SubjectMaker {
  std::string operator()(const bus::CloudQueueWorkDetectedTriggerEvent& work) const {
    return absl::StrCat("muster.trigger.", muster::nats::SubjectToken(work.storage_account), ".",
                        muster::nats::SubjectToken(work.queue_name));
  }
  std::string operator()(const bus::JobChangedEvent&) const { return "muster.event.job_changed"; }
  std::string operator()(const bus::BatchCountedEvent&) const {
    return "muster.event.batch_counted";
  }
  std::string operator()(const bus::BatchCancelledEvent&) const {
    return "muster.event.batch_cancelled";
  }
  std::string operator()(const bus::CancelAcknowledgedEvent&) const {
    return "muster.event.cancel_acknowledged";
  }
};

struct PayloadWriter {
  void operator()(const bus::CloudQueueWorkDetectedTriggerEvent& work) const {
    v1::CloudQueueWorkDetectedTriggerEvent& payload = *message->mutable_work_detected();
    payload.set_storage_account(work.storage_account);
    payload.set_queue_name(work.queue_name);
    payload.set_payload_size(work.payload_size);
    payload.set_wanted(work.wanted);
  }
  void operator()(const bus::JobChangedEvent& job) const {
    message->mutable_job_changed()->set_job(job.job);
  }
  void operator()(const bus::BatchCountedEvent& batch) const {
    message->mutable_batch_counted()->set_batch(batch.batch);
  }
  void operator()(const bus::BatchCancelledEvent& batch) const {
    message->mutable_batch_cancelled()->set_batch(batch.batch);
  }
  void operator()(const bus::CancelAcknowledgedEvent& batch) const {
    message->mutable_cancel_acknowledged()->set_batch(batch.batch);
  }

  v1::InterRoleCommunicationEvent* message;
};

}  // namespace

std::string SubjectOf(const bus::InterRoleCommunicationEvent& event) {
  return std::visit(SubjectMaker(), event.payload);
}

std::string EncodeEvent(const bus::InterRoleCommunicationEvent& event) {
  v1::InterRoleCommunicationEvent message;
  message.set_from(event.from);
  std::visit(PayloadWriter{&message}, event.payload);
  return message.SerializeAsString();
}

absl::StatusOr<bus::InterRoleCommunicationEvent> DecodeEvent(absl::string_view bytes) {
  v1::InterRoleCommunicationEvent message;
  if (bytes.size() > std::numeric_limits<int>::max() ||
      !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::InvalidArgumentError("not an InterRoleCommunicationEvent");
  }
  switch (message.payload_case()) {
    case v1::InterRoleCommunicationEvent::kWorkDetected: {
      const v1::CloudQueueWorkDetectedTriggerEvent& work = message.work_detected();
      return Event{message.from(), bus::CloudQueueWorkDetectedTriggerEvent{
                                       .storage_account = work.storage_account(),
                                       .queue_name = work.queue_name(),
                                       .payload_size = work.payload_size(),
                                       .wanted = work.wanted()}};
    }
    case v1::InterRoleCommunicationEvent::kJobChanged:
      return Event{message.from(), bus::JobChangedEvent{message.job_changed().job()}};
    case v1::InterRoleCommunicationEvent::kBatchCounted:
      return Event{message.from(), bus::BatchCountedEvent{message.batch_counted().batch()}};
    case v1::InterRoleCommunicationEvent::kBatchCancelled:
      return Event{message.from(), bus::BatchCancelledEvent{message.batch_cancelled().batch()}};
    case v1::InterRoleCommunicationEvent::kCancelAcknowledged:
      return Event{message.from(),
                   bus::CancelAcknowledgedEvent{message.cancel_acknowledged().batch()}};
    case v1::InterRoleCommunicationEvent::PAYLOAD_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("an event without a payload that is known here");
}

}  // namespace muster::bus::nats
