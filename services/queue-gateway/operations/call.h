// SPDX-License-Identifier: Apache-2.0

// What an operation is called with, and what it stands on.
#pragma once

#include <memory>
#include <string>

#include "muster/base/clock.h"
#include "muster/queue/queue_store.h"
#include "muster/sync/optimistic_sync_store.h"
#include "services/queue-gateway/auth/accounts.h"
#include "services/queue-gateway/auth/user_delegation.h"
#include "services/queue-gateway/http/message.h"
#include "services/queue-gateway/protocol/error.h"
#include "services/queue-gateway/protocol/route.h"
#include "services/queue-gateway/protocol/target.h"
#include "services/queue-gateway/protocol/version.h"

namespace muster::queue_gateway::operations {

// Nothing is owned.
struct Stores {
  queue::QueueStore* queues;
  sync::OptimisticSyncStore* records;  // ACLs and service properties
  base::Clock* clock;
};

// One request whose sender may do what it asks for.
struct Call {
  http::Request http;
  protocol::Target target;
  protocol::Resource resource;
  std::string version;  // of the API
  // Of a caller with a bearer token who asks for a user delegation key; otherwise empty, and null.
  auth::Identity caller = {};
  std::shared_ptr<const auth::Account> account = nullptr;

  // Whether the request is in the dialect of 2008, which names no version.
  bool in_first_dialect() const { return version == protocol::kFirstVersion; }
  queue::QueueId queue() const { return {resource.account, resource.queue}; }
};

using Outcome = protocol::OrError<http::Reply>;

}  // namespace muster::queue_gateway::operations
