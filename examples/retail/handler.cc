#include "examples/retail/handler.h"

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "examples/retail/timestamp.h"
#include "muster/base/decimal.h"
#include "muster/base/status.h"
#include "muster/handler/handler.h"

namespace retail {
namespace {

using muster::base::Decimal;
using muster::handler::Column;
using muster::handler::Group;
using muster::handler::Handler;
using muster::handler::JobSchema;
using muster::handler::Outcome;
using muster::handler::Results;
using muster::handler::Transaction;
using muster::handler::WorkItem;

// Where the job keeps what this handler reads and fills.
struct Places {
  Column quantity, price, date, customer, country;
  Group by_country_month, by_customer;
};

absl::StatusOr<Places> FindPlaces(const JobSchema& schema) {
  Places at;
  MUSTER_ASSIGN_OR_RETURN(at.quantity, schema.FindColumn("quantity"));
  MUSTER_ASSIGN_OR_RETURN(at.price, schema.FindColumn("price"));
  MUSTER_ASSIGN_OR_RETURN(at.date, schema.FindColumn("date"));
  MUSTER_ASSIGN_OR_RETURN(at.customer, schema.FindColumn("customer"));
  MUSTER_ASSIGN_OR_RETURN(at.country, schema.FindColumn("country"));
  MUSTER_ASSIGN_OR_RETURN(at.by_country_month, schema.FindGroup("by_country_month"));
  MUSTER_ASSIGN_OR_RETURN(at.by_customer, schema.FindGroup("by_customer"));
  return at;
}

std::string NotA(absl::string_view column, absl::string_view what, absl::string_view text) {
  return absl::StrCat(column, ": not a ", what, ": '", text, "'");
}

class RetailHandler final : public Handler {
 public:
  explicit RetailHandler(const Places& places) : at_(places) {}

  Outcome Process(const WorkItem& item, Results& results) override {
    for (const Transaction& line : item.transactions()) Bill(line, results);
    return Outcome::Ok();
  }

 private:
  void Bill(const Transaction& line, Results& results) const {
    const std::optional<Decimal> quantity = Decimal::TryParse(line[at_.quantity]);
    if (!quantity || quantity->scale() != 0) {
      return results.Reject(line, NotA("quantity", "whole number", line[at_.quantity]));
    }
    const std::optional<Decimal> price = Decimal::TryParse(line[at_.price]);
    if (!price) return results.Reject(line, NotA("price", "decimal number", line[at_.price]));
    const absl::string_view date = line[at_.date];
    if (!IsTimestamp(date)) {
      return results.Reject(line, NotA("date", "time like 2010-12-01 08:26:00", date));
    }
    const std::optional<Decimal> revenue = Decimal::TryMultiply(*quantity, *price);
    if (!revenue) return results.Reject(line, "revenue: overflows");

    const Decimal one = Decimal::FromInt(1);
    results.Count(
        line,
        {{at_.by_country_month, {line[at_.country], MonthOf(date)}, {*revenue, *quantity, one}},
         {at_.by_customer, {line[at_.customer]}, {*revenue, *quantity, one}}});
  }

  const Places at_;
};

absl::StatusOr<std::unique_ptr<Handler>> MakeRetailHandler(const JobSchema& schema) {
  MUSTER_ASSIGN_OR_RETURN(const Places places, FindPlaces(schema));
  return std::make_unique<RetailHandler>(places);
}

}  // namespace

void RegisterRetail(muster::handler::HandlerRegistry& registry) {
  registry.Register({"retail", "1", MakeRetailHandler});
}

}  // namespace retail
