#include "tests/engine/engine.h"
