// SPDX-License-Identifier: Apache-2.0

// Whole numbers on a command line, for `muster` and for the services.
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace muster::host {

// Has all options and arguments that `app` and its commands have so far refuse a whole number that
// begins with a zero or is out of range, also where an environment variable sets them. By itself
// CLI11 reads 010 as eight, and takes the largest number for one that is too large: the batch of
// another number would be deleted.
void CheckNumbers(CLI::App* app);

}  // namespace muster::host
