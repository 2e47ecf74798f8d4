// Backlog: the queued work as formulas want it, oldest first.
#pragma once

#include <deque>

#include "muster/scaling/policy/cohort_ledger.h"

namespace muster::scaling::policy {

struct Backlog {
  const std::deque<Cohort>* cohorts = nullptr;  // not owned
  double items = 0;                             // of all cohorts
  // Of the oldest items, how many are reckoned to be done although no reading shows it yet.
  double done = 0;
};

}  // namespace muster::scaling::policy
