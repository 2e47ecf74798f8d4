// Logarithm and exponential that yield the same bits on every machine. Those of the C library may
// differ in the last bit from one library to the next, and one item that ends a microsecond earlier
// can change every later decision. These use only what IEEE 754 rounds exactly.
#pragma once

namespace muster::scaling::replay {

// Natural logarithm of a normal number above 0; within 1e-14 of the exact one, relative to it or
// absolute, whichever is more.
double PortableLog(double x);

// Within a relative error of 1e-14, for |x| ≤ 700.
double PortableExp(double x);

}  // namespace muster::scaling::replay
