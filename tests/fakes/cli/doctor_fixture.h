// SPDX-License-Identifier: Apache-2.0

// The fixture for tests of `muster doctor`: a healthy mesh.
#pragma once

#include <string>

#include "muster/base/proto_time.h"
#include "tests/fakes/cli/client_fixture.h"

namespace muster::cli {

// A processor and a controller at the same ready address, with handler version 7 of job "shop".
class DoctorTest : public ClientTest {
 protected:
  DoctorTest() {
    controller_->SetReady(true);
    initiator_->SetReady(true);
    v1::Instance processor = mesh_.controllers[0];
    processor.mutable_info()->set_role(v1::ROLE_PROCESSOR);
    processor.mutable_info()->set_instance("p-1");
    v1::HandlerVersion* const handler = processor.mutable_info()->add_handlers();
    handler->set_job("shop");
    handler->set_version("7");
    mesh_.others = {processor};
    for (v1::Instance* instance : {&mesh_.others[0], &mesh_.controllers[0]}) {
      instance->mutable_info()->set_version(Version());
      *instance->mutable_last_heartbeat() = base::ToProto(clock_.Now());
      *instance->mutable_heartbeat()->mutable_sent() = base::ToProto(clock_.Now());
    }
  }

  // A batch in progress.
  void PutBatch(uint64_t number, const std::string& job, const std::string& handler_version) {
    v1::BatchStatus& batch = batches_.batches[number];
    batch.set_batch(number);
    batch.set_job(job);
    batch.set_state(v1::BATCH_STATE_SEALED);
    batch.set_handler_version(handler_version);
  }

  std::string Version() {
    const std::string line = Run({"version"}).out;  // "muster X (REVISION)\n"
    return line.substr(7, line.find(" (") - 7);
  }
};

}  // namespace muster::cli
