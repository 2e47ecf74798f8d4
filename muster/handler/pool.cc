// SPDX-License-Identifier: Apache-2.0
#include "muster/handler/pool.h"

#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "muster/base/check.h"
#include "muster/base/mutex.h"
#include "muster/base/status.h"

namespace muster::handler {
namespace {

using HandlerPtr = std::unique_ptr<Handler>;

void DestroySideBySide(std::vector<HandlerPtr> handlers) {
  std::vector<std::thread> ends;
  ends.reserve(handlers.size());
  for (HandlerPtr& handler : handlers) {
    try {
      ends.emplace_back([&handler] { handler.reset(); });
    } catch (const std::system_error&) {
      handler.reset();
    }
  }
  for (std::thread& end : ends) end.join();
}

// Thread-safe.
class Pool {
 public:
  explicit Pool(HandlerFactory make) : make_(std::move(make)) {}
  ~Pool() { DestroySideBySide(std::move(idle_)); }

  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  absl::StatusOr<HandlerPtr> Take(const JobSchema& schema) ABSL_LOCKS_EXCLUDED(mu_) {
    {
      base::MutexLock lock(&mu_);
      if (!idle_.empty()) {
        HandlerPtr handler = std::move(idle_.back());
        idle_.pop_back();
        return handler;
      }
    }
    return make_(schema);
  }

  void GiveBack(HandlerPtr handler) ABSL_LOCKS_EXCLUDED(mu_) {
    base::MutexLock lock(&mu_);
    MUSTER_CHECK(handler != nullptr, "a handler is given back twice; idle ", idle_.size());
    idle_.push_back(std::move(handler));
  }

 private:
  const HandlerFactory make_;
  base::Mutex mu_;
  std::vector<HandlerPtr> idle_ ABSL_GUARDED_BY(mu_);  // the last used last
};

class LentHandler final : public Handler {
 public:
  LentHandler(std::shared_ptr<Pool> pool, HandlerPtr handler)
      : pool_(std::move(pool)), handler_(std::move(handler)) {}
  ~LentHandler() override { pool_->GiveBack(std::move(handler_)); }

  LentHandler(const LentHandler&) = delete;
  LentHandler& operator=(const LentHandler&) = delete;

  Outcome Process(const WorkItem& item, Results& results) override {
    return handler_->Process(item, results);
  }

 private:
  const std::shared_ptr<Pool> pool_;
  HandlerPtr handler_;
};

}  // namespace

HandlerFactory PooledHandlers(HandlerFactory make) {
  // Shared: what was lent may outlive the factory, and copies of the factory lend from one pool.
  auto pool = std::make_shared<Pool>(std::move(make));
  return [pool](const JobSchema& schema) -> absl::StatusOr<HandlerPtr> {
    MUSTER_ASSIGN_OR_RETURN(HandlerPtr handler, pool->Take(schema));
    if (handler == nullptr) return absl::InternalError("the handler's factory made none");
    return std::make_unique<LentHandler>(pool, std::move(handler));
  };
}

}  // namespace muster::handler
