#pragma once

#include "tests/seam/seam.h"
