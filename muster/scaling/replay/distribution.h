// SPDX-License-Identifier: Apache-2.0

// Random times that are the same on every machine.
//
// PortableLog and PortableExp yield the same bits on every machine. C libraries differ in the last
// bit, and one item that ends a microsecond earlier can change every later decision. These
// functions use only operations that IEEE 754 rounds exactly.
#pragma once

#include <cstdint>

#include "muster/base/random.h"

namespace muster::scaling::replay {

// Natural logarithm of a normal number above 0. Its error is at most the larger of 1e-14 and 1e-14
// times the exact logarithm.
double PortableLog(double x);

// Within a relative error of 1e-14, for |x| ≤ 700.
double PortableExp(double x);

// The sources of randomness, each with its own sequence: draws from one source do not shift
// another, so that policies are compared under the same random events.

enum class RandomStream : uint64_t {
  kService = 1,
  kColdStart,
  kTriggers,
  kPolicyPhases,
};

inline base::UniformSource Stream(uint64_t seed, RandomStream stream) {
  // Odd, and large: neighbouring seeds and streams begin far from each other.
  constexpr uint64_t kStride = 0x9e3779b97f4a7c15;
  return base::SeededUniform(seed * kStride + static_cast<uint64_t>(stream));
}

// The distribution of a service time or a cold start around its mean.

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
  // The 95th percentile.
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
