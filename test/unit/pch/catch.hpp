// Precompiled for the unit tests, which all include it and spend more than a second each on it.
#include <catch2/catch.hpp>

#include "policy/pch/std.hpp"
