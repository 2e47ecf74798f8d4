// SPDX-License-Identifier: Apache-2.0

// A muster whose handler `records` adds up each line of the retail job, and returns a record for
// each if the job has outputs. bench/outputs runs it.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "cli/main.h"
#include "muster/base/decimal.h"
#include "muster/base/status.h"
#include "muster/handler/handler.h"

namespace {

using muster::base::Decimal;
using muster::handler::Column;
using muster::handler::Group;
using muster::handler::JobSchema;
using muster::handler::Results;
using muster::handler::Transaction;

class Records final : public muster::handler::Handler {
 public:
  Records(Column customer, Column quantity, Column price, bool gives)
      : customer_(customer), quantity_(quantity), price_(price), gives_(gives) {}

  muster::handler::Outcome Process(const muster::handler::WorkItem& item,
                                   Results& results) override {
    for (const Transaction& line : item.transactions()) Count(line, results);
    return muster::handler::Outcome::Ok();
  }

 private:
  void Count(const Transaction& line, Results& results) const {
    const std::optional<Decimal> quantity = Decimal::TryParse(line[quantity_]);
    const std::optional<Decimal> price = Decimal::TryParse(line[price_]);
    const std::optional<Decimal> total =
        quantity && price ? Decimal::TryMultiply(*quantity, *price) : std::nullopt;
    if (!total) return results.Reject(line, "no amount");
    if (!gives_) return results.Count(line, {{Group{0}, {line[customer_]}, {*total}}});
    results.Count(
        line, {{Group{0}, {line[customer_]}, {*total}}},
        {{std::string(line[customer_]), std::string(line[quantity_]), total->ToString()}});
  }

  const Column customer_, quantity_, price_;
  const bool gives_;
};

absl::StatusOr<std::unique_ptr<muster::handler::Handler>> Make(const JobSchema& schema) {
  MUSTER_ASSIGN_OR_RETURN(const Column customer, schema.FindColumn("customer"));
  MUSTER_ASSIGN_OR_RETURN(const Column quantity, schema.FindColumn("quantity"));
  MUSTER_ASSIGN_OR_RETURN(const Column price, schema.FindColumn("price"));
  return std::make_unique<Records>(customer, quantity, price, !schema.outputs.empty());
}

}  // namespace

int main(int argc, char** argv) {
  muster::handler::HandlerRegistry handlers;
  handlers.Register({"records", "1", Make});
  return muster::cli::Main(argc, argv, handlers);
}
