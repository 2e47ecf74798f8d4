// SPDX-License-Identifier: Apache-2.0

// Option: an option or argument of a command line, declared without CLI11's headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

// What programs declare of their command lines. CLI11 reads and checks it; its headers cost each
// file that includes them three to five seconds of compiling, so only a few do: those here, and
// those that look through a whole command line. Names and rules are CLI11's. Nothing here is
// thread-safe: a command line is read before other threads start.
namespace muster::args {

// Looks at a text that was given: "" or what is wrong with it. Within Option::Transform it may
// write another text in its place.
struct Validator {
  std::function<std::string(std::string&)> look;
  std::string type;  // what the help shows of it, such as "HOST:PORT"; may be empty
};

// Numbers from `low` to `high`, both included.
Validator Range(int low, int high);
Validator Range(int64_t low, int64_t high);
Validator Range(double low, double high);
// Numbers above 0; numbers that are not below.
Validator PositiveNumber();
Validator NonNegativeNumber();
// One of these words.
Validator IsMember(const std::vector<std::string>& words);

// A handle to what was added to a command, which owns it: valid as long as the command. Each change
// returns the same option.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  // Refuses what `validator`, or `look`, finds wrong.
  Option Check(const Validator& validator) const;
  Option Check(std::function<std::string(const std::string&)> look, std::string type = "") const;
  // The same, and takes the text that `validator` writes.
  Option Transform(const Validator& validator) const;
  Option Required() const;
  // Only with, or never beside, `other`.
  Option Needs(Option other) const;
  Option Excludes(Option other) const;
  // The environment variable that sets it where the command line does not.
  Option Envname(const std::string& name) const;
  // What the help shows in the place of a value, and as its default.
  Option TypeName(const std::string& name) const;
  Option DefaultStr(const std::string& text) const;
  // Shows the value that its place has now.
  Option CaptureDefaultStr() const;
  // One text holds several values, separated so.
  Option Delimiter(char delimiter) const;
  // One value each time that it is named; all of them are taken.
  Option Repeatable() const;
  // Words that follow it are no further values of it.
  Option NoExtraArguments() const;

  // How often it was given, on the command line or by its variable.
  size_t count() const;
  CLI::Option* get() const { return option_; }

 private:
  CLI::Option* option_;
};

// Adds an option such as "-o,--output", or an argument such as "FILE", whose value goes to `*value`
// when the command line is read; `*value` outlives `app`. T: std::string, int, int64_t,
// uint64_t, double, a std::optional of int64_t, uint64_t or double, or a std::vector of texts,
// int64_t or uint64_t.
template <typename T>
Option Add(CLI::App* app, const std::string& name, T* value, const std::string& help);
// The same for a flag, which takes no value.
Option AddFlag(CLI::App* app, const std::string& name, bool* value, const std::string& help);
// The same, and gives what was read to `take`.
Option AddFunction(CLI::App* app, const std::string& name,
                   std::function<void(const std::string&)> take, const std::string& help);
Option AddFunction(CLI::App* app, const std::string& name,
                   std::function<void(const std::vector<std::string>&)> take,
                   const std::string& help);

// The same for an option that takes one text each time that it is named.
Option AddTexts(CLI::App* app, const std::string& name,
                std::function<void(const std::vector<std::string>&)> take, const std::string& help);

// The same as Add for one value, or several, of an enumeration: of its numbers, which
// Option::Transform writes.
template <typename Enum>
requires std::is_enum_v<Enum> Option Add(CLI::App* app, const std::string& name, Enum* value,
                                         const std::string& help) {
  const auto take = [value](const std::string& number) {
    *value = static_cast<Enum>(std::stoi(number));
  };
  return AddFunction(app, name, take, help).TypeName("ENUM");
}
template <typename Enum>
requires std::is_enum_v<Enum> Option Add(CLI::App* app, const std::string& name,
                                         std::vector<Enum>* values, const std::string& help) {
  const auto take = [values](const std::vector<std::string>& numbers) {
    values->clear();
    for (const std::string& number : numbers) {
      values->push_back(static_cast<Enum>(std::stoi(number)));
    }
  };
  return AddFunction(app, name, take, help).TypeName("ENUM");
}

// Whether `app` has an option of that name. Find: that option, which must be there.
bool Has(const CLI::App& app, const std::string& name);
Option Find(CLI::App* app, const std::string& name);
// Whether the command line itself names it, no variable.
bool IsOnCommandLine(const CLI::App& app, Option option);

}  // namespace muster::args
