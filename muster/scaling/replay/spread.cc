#include "muster/scaling/replay/spread.h"

#include <algorithm>
#include <cmath>

#include "muster/scaling/replay/portable_math.h"

namespace muster::scaling::replay {
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
