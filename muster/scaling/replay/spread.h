// How a time varies around its mean: a service time, a cold start.
#pragma once

#include <cstdint>
#include <string_view>

#include "muster/base/random.h"

namespace muster::scaling::replay {

enum class Shape {
  kFixed,
  kExponential,
  kLognormal,
};

class Distribution {
 public:
  // `mean_us` is at least 0. `sigma`: of the logarithm, for kLognormal.
  Distribution(Shape shape, int64_t mean_us, double sigma);

  Shape shape() const { return shape_; }
  int64_t mean_us() const { return mean_us_; }
  // 19 of 20 are below.
  int64_t P95Us() const;

  // The same numbers from `uniform` yield the same times on every machine.
  int64_t Draw(const base::UniformSource& uniform) const;

 private:
  double Factor(const base::UniformSource& uniform) const;

  Shape shape_;
  int64_t mean_us_;
  double sigma_;
};

}  // namespace muster::scaling::replay
