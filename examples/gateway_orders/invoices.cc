#include "examples/gateway_orders/invoices.h"

#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/status.h"
#include "nlohmann/json.hpp"

namespace muster::example {
namespace {

using listener::Settlement;
using nlohmann::ordered_json;

absl::StatusOr<Prices> ReadPrices(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::UnavailableError(absl::StrCat(path, ": cannot be read"));
  return ParsePrices(std::string(std::istreambuf_iterator<char>(file), {}));
}

absl::StatusOr<base::Decimal> Price(const ordered_json& line, const Prices& prices) {
  const auto item = line.at("item").get<std::string>();
  const auto price = prices.find(item);
  if (price == prices.end()) {
    return absl::NotFoundError(absl::StrCat("'", item, "' has no price"));
  }
  return base::Decimal::Multiply(price->second,
                                 base::Decimal::FromInt(line.at("units").get<int64_t>()));
}

Settlement Failed(const absl::Status& why) {
  Settlement settlement;
  settlement.kind =
      absl::IsInvalidArgument(why) ? Settlement::Kind::kDead : Settlement::Kind::kRetry;
  settlement.why = std::string(why.message());
  return settlement;
}

// An invoice that is put twice, because the worker died before it deleted the order, is stored
// once: it has the order's id.
Settlement Done(const std::string& invoice, const queue::Message& order) {
  Settlement settlement;
  settlement.kind = Settlement::Kind::kOk;
  queue::NewMessage message;
  message.body = invoice;
  message.ttl = queue::kNeverExpires;
  message.dedup_id = order.message_id;
  settlement.outputs.push_back(std::move(message));
  return settlement;
}

}  // namespace

absl::StatusOr<Prices> ParsePrices(absl::string_view text) {
  Prices prices;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (line.empty()) continue;
    const std::vector<std::string> parts = absl::StrSplit(line, ',');
    const auto price = base::Decimal::TryParse(parts.back());
    if (parts.size() != 2 || !price.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat("line ", number, " is no item,price"));
    }
    prices[parts[0]] = *price;
  }
  return prices;
}

absl::StatusOr<std::string> MakeInvoice(absl::string_view order, const Prices& prices) {
  try {
    const auto read = ordered_json::parse(order.begin(), order.end());
    base::Decimal total = base::Decimal::FromInt(0);
    for (const ordered_json& line : read.at("lines")) {
      MUSTER_ASSIGN_OR_RETURN(const base::Decimal price, Price(line, prices));
      MUSTER_ASSIGN_OR_RETURN(total, base::Decimal::Add(total, price));
    }
    const ordered_json invoice = {{"order", read.at("order").get<std::string>()},
                                  {"total", total.ToString()}};
    return invoice.dump();
  } catch (const ordered_json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("no order: ", error.what()));
  }
}

void InvoiceSubscriber::OnMessages(absl::Span<listener::Delivery> deliveries,
                                   listener::DeliveryContext& context) {
  const absl::StatusOr<Prices> prices = ReadPrices(prices_file_);
  for (listener::Delivery& delivery : deliveries) {
    // The lease is lost, or the worker stops: the message comes again.
    if (!context.Begin(delivery).ok()) continue;
    if (!prices.ok()) {
      // The file is wrong, not the order.
      context.Settle(delivery, Failed(absl::UnavailableError(prices.status().message())));
      continue;
    }
    const absl::StatusOr<std::string> invoice = MakeInvoice(delivery.message->body, *prices);
    context.Settle(delivery,
                   invoice.ok() ? Done(*invoice, *delivery.message) : Failed(invoice.status()));
  }
}

}  // namespace muster::example
