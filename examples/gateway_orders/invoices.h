// Invoices: the handler of this example. It reads orders as a Python program has put them into a
// queue gateway, and answers invoices.
//
//   {"order": "A-1", "lines": [{"item": "tea", "units": 3}]}
//   {"order": "A-1", "total": "12.60"}
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "muster/base/decimal.h"
#include "muster/listener/subscriber.h"

namespace muster::example {

using Prices = std::map<std::string, base::Decimal>;  // by item

// One "item,price" in each line. InvalidArgument naming the line.
absl::StatusOr<Prices> ParsePrices(absl::string_view text);

// The invoice of an order, in JSON. InvalidArgument: it is no order, and never will be one.
// NotFound: an item has no price.
absl::StatusOr<std::string> MakeInvoice(absl::string_view order, const Prices& prices);

// Reads the prices from a file for each batch of orders, so that a new price needs no restart. An
// order without a price is tried again, and is poison after the last attempt; what is no order is
// poison at once.
class InvoiceSubscriber final : public listener::Subscriber {
 public:
  explicit InvoiceSubscriber(std::string prices_file) : prices_file_(std::move(prices_file)) {}

  void OnMessages(absl::Span<listener::Delivery> deliveries,
                  listener::DeliveryContext& context) override;

 private:
  const std::string prices_file_;
};

}  // namespace muster::example
