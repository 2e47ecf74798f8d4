#include "muster/scaling/replay/portable_math.h"

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

}  // namespace muster::scaling::replay
