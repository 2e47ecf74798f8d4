// SPDX-License-Identifier: Apache-2.0
#include "muster/args/option.h"

#include <algorithm>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"

namespace muster::args {
namespace {

Validator Of(const CLI::Validator& validator) {
  return {[validator](std::string& text) { return validator(text); }, validator.get_description()};
}

// CLI11's own complain of a range that ends with the largest number of all, in 309 digits.
template <typename IsEnough>
Validator AtLeast(const CLI::Validator& described, IsEnough is_enough) {
  const auto look = [is_enough](std::string& text) -> std::string {
    double number = 0;
    if (!CLI::detail::lexical_cast(text, number)) return "'" + text + "' is not a number";
    return is_enough(number) ? "" : text + " is too small";
  };
  return {look, described.get_description()};
}

// To the C library, "-1" is the largest number that has no sign.
std::string RefuseSign(const std::string& text) {
  return text.rfind('-', 0) == 0 ? text + " is too small" : "";
}

CLI::Validator ForCli(const Validator& validator) {
  return CLI::Validator(validator.look, validator.type);
}

}  // namespace

Validator Range(int low, int high) { return Of(CLI::Range(low, high)); }
Validator Range(int64_t low, int64_t high) { return Of(CLI::Range(low, high)); }
Validator Range(double low, double high) { return Of(CLI::Range(low, high)); }
Validator PositiveNumber() {
  return AtLeast(CLI::PositiveNumber, [](double number) { return number > 0; });
}
Validator NonNegativeNumber() {
  return AtLeast(CLI::NonNegativeNumber, [](double number) { return number >= 0; });
}
Validator IsMember(const std::vector<std::string>& words) { return Of(CLI::IsMember(words)); }

Option Option::Check(const Validator& validator) const {
  option_->check(ForCli(validator));
  return *this;
}

Option Option::Check(std::function<std::string(const std::string&)> look, std::string type) const {
  option_->check(std::move(look), std::move(type));
  return *this;
}

Option Option::Transform(const Validator& validator) const {
  option_->transform(ForCli(validator));
  return *this;
}

Option Option::Required() const {
  option_->required();
  return *this;
}

Option Option::Needs(Option other) const {
  option_->needs(other.get());
  return *this;
}

Option Option::Excludes(Option other) const {
  option_->excludes(other.get());
  return *this;
}

Option Option::Envname(const std::string& name) const {
  option_->envname(name);
  return *this;
}

Option Option::TypeName(const std::string& name) const {
  option_->type_name(name);
  return *this;
}

Option Option::DefaultStr(const std::string& text) const {
  option_->default_str(text);
  return *this;
}

Option Option::CaptureDefaultStr() const {
  option_->capture_default_str();
  return *this;
}

Option Option::Delimiter(char delimiter) const {
  option_->delimiter(delimiter);
  return *this;
}

Option Option::Repeatable() const {
  option_->expected(1)->take_all();
  return *this;
}

Option Option::NoExtraArguments() const {
  option_->allow_extra_args(false);
  return *this;
}

size_t Option::count() const { return option_->count(); }

template <typename T>
Option Add(CLI::App* app, const std::string& name, T* value, const std::string& help) {
  const Option option(app->add_option(name, *value, help));
  if constexpr (std::is_same_v<T, uint64_t> || std::is_same_v<T, std::optional<uint64_t>> ||
                std::is_same_v<T, std::vector<uint64_t>>) {
    return option.Check(RefuseSign);
  }
  return option;
}

template Option Add(CLI::App*, const std::string&, std::string*, const std::string&);
template Option Add(CLI::App*, const std::string&, int*, const std::string&);
template Option Add(CLI::App*, const std::string&, int64_t*, const std::string&);
template Option Add(CLI::App*, const std::string&, uint64_t*, const std::string&);
template Option Add(CLI::App*, const std::string&, double*, const std::string&);
template Option Add(CLI::App*, const std::string&, std::optional<int64_t>*, const std::string&);
template Option Add(CLI::App*, const std::string&, std::optional<uint64_t>*, const std::string&);
template Option Add(CLI::App*, const std::string&, std::optional<double>*, const std::string&);
template Option Add(CLI::App*, const std::string&, std::vector<std::string>*, const std::string&);
template Option Add(CLI::App*, const std::string&, std::vector<uint64_t>*, const std::string&);
template Option Add(CLI::App*, const std::string&, std::vector<int64_t>*, const std::string&);

Option AddFlag(CLI::App* app, const std::string& name, bool* value, const std::string& help) {
  return Option(app->add_flag(name, *value, help));
}

Option AddFunction(CLI::App* app, const std::string& name,
                   std::function<void(const std::string&)> take, const std::string& help) {
  return Option(app->add_option_function<std::string>(name, take, help));
}

Option AddFunction(CLI::App* app, const std::string& name,
                   std::function<void(const std::vector<std::string>&)> take,
                   const std::string& help) {
  return Option(app->add_option_function<std::vector<std::string>>(name, take, help));
}

Option AddTexts(CLI::App* app, const std::string& name,
                std::function<void(const std::vector<std::string>&)> take,
                const std::string& help) {
  const auto take_all = [take = std::move(take)](const CLI::results_t& texts) {
    take(texts);
    return true;
  };
  return Option(app->add_option(name, take_all, help));
}

bool Has(const CLI::App& app, const std::string& name) {
  return app.get_option_no_throw(name) != nullptr;
}

Option Find(CLI::App* app, const std::string& name) { return Option(app->get_option(name)); }

bool IsOnCommandLine(const CLI::App& app, Option option) {
  const auto& order = app.parse_order();
  return std::find(order.begin(), order.end(), option.get()) != order.end();
}

}  // namespace muster::args
