// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/replay/distribution.h"

#include <algorithm>
#include <cmath>

namespace muster::scaling::replay {

namespace {

// ln 2 as a sum of two, the first with so few bits that its product with an exponent is exact.
constexpr double kLn2High = 0x1.62e42fefap-1;
constexpr double kLn2Low = 0x1.cf79abc9e3b3ap-40;
constexpr double kSqrtHalf = 0x1.6a09e667f3bcdp-1;
constexpr int kLogTerms = 11;  // s²ⁿ/(2n+1) with s² < 0.03
constexpr int kExpTerms = 15;  // |r|ⁿ/n! with |r| < 0.35

}  // namespace

double PortableLog(double x) {
  int exponent;
  double fraction = std::frexp(x, &exponent);  // exact
  if (fraction < kSqrtHalf) {
    fraction *= 2;
    --exponent;
  }
  // ln f = 2·artanh s = 2·(s + s³/3 + s⁵/5 + …)
  const double s = (fraction - 1) / (fraction + 1);
  const double square = s * s;
  double sum = 0;
  for (int n = kLogTerms; n >= 0; --n) sum = sum * square + 1.0 / (2 * n + 1);
  return exponent * kLn2High + (exponent * kLn2Low + 2 * s * sum);
}

double PortableExp(double x) {
  const double halves = std::floor(x / (kLn2High + kLn2Low) + 0.5);
  const double rest = (x - halves * kLn2High) - halves * kLn2Low;
  double sum = 1;
  for (int n = kExpTerms; n > 0; --n) sum = sum * rest / n + 1;
  return std::ldexp(sum, static_cast<int>(halves));  // exact
}

namespace {

constexpr double kNormalP95 = 1.6448536269514722;
constexpr double kExponentialP95 = 2.995732273553991;  // ln 20
constexpr double kLongest = 1e17;  // microseconds: 3,000 years, far from the end of 63 bits

int64_t Scaled(int64_t mean_us, double factor) {
  return static_cast<int64_t>(
      std::min(std::floor(static_cast<double>(mean_us) * factor + 0.5), kLongest));
}

// Marsaglia's polar method: a logarithm and a square root, which IEEE 754 rounds exactly.
double StandardNormal(const base::UniformSource& uniform) {
  while (true) {
    const double x = 2 * uniform() - 1;
    const double y = 2 * uniform() - 1;
    const double square = x * x + y * y;
    if (square >= 1 || square == 0) continue;
    return x * std::sqrt(-2 * PortableLog(square) / square);
  }
}

}  // namespace

Distribution::Distribution(Shape shape, int64_t mean_us, double sigma)
    : shape_(shape), mean_us_(mean_us), sigma_(sigma) {}

int64_t Distribution::P95Us() const {
  switch (shape_) {
    case Shape::kFixed:
      return mean_us_;
    case Shape::kExponential:
      return Scaled(mean_us_, kExponentialP95);
    case Shape::kLognormal:
      return Scaled(mean_us_, PortableExp(sigma_ * kNormalP95 - sigma_ * sigma_ / 2));
  }
  return mean_us_;
}

double Distribution::Factor(const base::UniformSource& uniform) const {
  if (shape_ == Shape::kExponential) return -PortableLog(1 - uniform());
  return PortableExp(sigma_ * StandardNormal(uniform) - sigma_ * sigma_ / 2);  // its mean is 1
}

int64_t Distribution::Draw(const base::UniformSource& uniform) const {
  return shape_ == Shape::kFixed ? mean_us_ : Scaled(mean_us_, Factor(uniform));
}

}  // namespace muster::scaling::replay
