// SPDX-License-Identifier: Apache-2.0

// Numbers on a command line, for `muster` and for the services.
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace muster::host {

// Has all options and arguments that `app` and its commands have so far refuse what is no number,
// or is out of range, also where an environment variable sets them: a whole number that begins with
// a zero, and a number such as nan or inf. By itself CLI11 reads 010 as eight, and takes the
// largest number for one that is too large: the batch of another number would be deleted. nan it
// takes for a number that lies within all bounds.
void CheckNumbers(CLI::App* app);

}  // namespace muster::host
