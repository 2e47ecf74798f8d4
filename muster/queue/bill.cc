#include "muster/queue/bill.h"

#include "absl/strings/str_format.h"

namespace muster::queue {

void Usage::Add(const Usage& other) {
  for (size_t verb = 0; verb < transactions.size(); ++verb) {
    transactions[verb].useful += other.transactions[verb].useful;
    transactions[verb].wasted += other.transactions[verb].wasted;
  }
  wakeups_push += other.wakeups_push;
  wakeups_safety += other.wakeups_safety;
  bus_messages += other.bus_messages;
}

int64_t Usage::total() const {
  int64_t sum = 0;
  for (const Transactions& of_verb : transactions) sum += of_verb.total();
  return sum;
}

int64_t Usage::wasted() const {
  int64_t sum = 0;
  for (const Transactions& of_verb : transactions) sum += of_verb.wasted;
  return sum;
}

double TransactionCost(int64_t transactions, const Prices& prices) {
  return static_cast<double>(transactions) / 10'000 * prices.per_10000_transactions;
}

double Cost(const Usage& usage, const Prices& prices) {
  return TransactionCost(usage.total(), prices) +
         static_cast<double>(usage.bus_messages) / 1e6 * prices.per_million_bus_messages;
}

std::string ShowDollars(double dollars) {
  const bool cents_show_it = dollars == 0 || dollars >= 0.10;
  return cents_show_it ? absl::StrFormat("$%.2f", dollars) : absl::StrFormat("$%.6f", dollars);
}

}  // namespace muster::queue
