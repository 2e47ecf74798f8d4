// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/engine.h"
