// The retail example: bills each line of an online shop as Quantity × UnitPrice, exactly.
#pragma once

#include "muster/handler/handler.h"

namespace retail {

// Adds the handler "retail" to those that a job file may name. It reads the columns quantity,
// price, date, customer and country, and fills the groups by_country_month (keys country, month)
// and by_customer (key customer), both with the measures revenue, units and transactions.
void RegisterRetail(muster::handler::HandlerRegistry& registry);

}  // namespace retail
