// Includes Catch2, whichever major version the system has; the only header of tests that does so.
#pragma once

#ifdef TWILL_CATCH2_V2
#include <catch2/catch.hpp>
#else
#include <catch2/catch_all.hpp>
using Catch::Approx;
#endif
