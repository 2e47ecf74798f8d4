// SPDX-License-Identifier: Apache-2.0
#include "muster/rpc/instance_client.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace muster::rpc {
namespace {

bool IsSilent(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsCancelled(status);
}

// Moves `address` to the front of `addresses` if it is there.
void PutFirst(const std::string& address, std::vector<std::string>* addresses) {
  const auto found = std::find(addresses->begin(), addresses->end(), address);
  if (found != addresses->end()) std::rotate(addresses->begin(), found, std::next(found));
}

// Moves `address` to position `next`, or puts it in there, unless it stands before.
void PutNext(const std::string& address, size_t next, std::vector<std::string>* addresses) {
  const auto asked = addresses->begin() + static_cast<ptrdiff_t>(next);
  if (address.empty() || std::find(addresses->begin(), asked, address) != asked) return;
  const auto known = std::find(asked, addresses->end(), address);
  if (known != addresses->end()) {
    std::rotate(asked, known, std::next(known));
  } else {
    addresses->insert(asked, address);
  }
}

}  // namespace

// An instance, as calls see it.
struct InstanceSet::Instance {
  Instance(std::shared_ptr<void> opened, base::Clock* clock)
      : stub(std::move(opened)), breaker(clock) {}

  const std::shared_ptr<void> stub;
  CircuitBreaker breaker;
};

InstanceSet::InstanceSet(std::string role, InstanceAddresses addresses,
                         ChannelOptions channel_options, MakeStub make_stub, base::Clock* clock)
    : role_(std::move(role)),
      addresses_(std::move(addresses)),
      channel_options_(std::move(channel_options)),
      make_stub_(std::move(make_stub)),
      clock_(clock) {}

absl::StatusOr<Asked> InstanceSet::Ask(const AskOptions& options, Call call, Judge judge) {
  MUSTER_ASSIGN_OR_RETURN(std::vector<std::string> addresses, Known());
  PutFirst(options.first, &addresses);
  const absl::Duration end = clock_->Monotonic() + options.timeout;
  Asked asked;
  while (asked.instances < std::min(addresses.size(), options.most)) {
    const std::string address = addresses[asked.instances++];
    const bool is_last = asked.instances == std::min(addresses.size(), options.most);
    const absl::Duration left = end - clock_->Monotonic();
    const absl::Status answer = AskOne(address, is_last ? left : left / 2, call);
    if (IsSilent(answer)) {
      if (!asked.silence.ok()) continue;
      const absl::Status told =
          absl::IsCancelled(answer) ? absl::UnavailableError(answer.message()) : answer;
      asked.silence = base::Annotate(told, absl::StrCat(role_, " ", address));
      continue;
    }
    const Verdict verdict = judge(answer);
    if (!verdict.ask_on) {
      asked.answer = answer;
      asked.address = address;
      break;
    }
    PutNext(verdict.next, asked.instances, &addresses);
  }
  return asked;
}

absl::StatusOr<std::vector<std::string>> InstanceSet::Known() {
  MUSTER_ASSIGN_OR_RETURN(std::vector<std::string> known, addresses_());
  base::MutexLock lock(&mu_);
  std::erase_if(found_, [&known](const auto& entry) {
    return std::find(known.begin(), known.end(), entry.first) == known.end();
  });
  return known;
}

// Instances before this one may have taken all of the time. They are spared next time, and this one
// is asked then.
absl::Status InstanceSet::AskOne(const std::string& address, absl::Duration timeout, Call call) {
  const absl::StatusOr<std::shared_ptr<Instance>> instance = Find(address);
  if (!instance.ok()) return absl::UnavailableError(instance.status().message());
  if (timeout <= absl::ZeroDuration()) {
    return absl::UnavailableError("others let the call time out");
  }
  MUSTER_RETURN_IF_ERROR((*instance)->breaker.Admit());
  absl::Status answer = call((*instance)->stub.get(), timeout);
  (*instance)->breaker.Note(answer);
  return answer;
}

absl::StatusOr<std::shared_ptr<InstanceSet::Instance>> InstanceSet::Find(
    const std::string& address) {
  base::MutexLock lock(&mu_);
  std::shared_ptr<Instance>& instance = found_[address];
  if (instance == nullptr) {
    const absl::StatusOr<std::shared_ptr<grpc::Channel>> channel =
        OpenChannel(address, channel_options_);
    if (!channel.ok()) {
      found_.erase(address);
      return channel.status();
    }
    instance = std::make_shared<Instance>(make_stub_(*channel), clock_);
  }
  return instance;
}

}  // namespace muster::rpc
