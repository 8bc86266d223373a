// The one include for Catch2, whichever major version the system has.
#pragma once

#ifdef TWILL_CATCH2_V2
#include <catch2/catch.hpp>
#else
#include <catch2/catch_all.hpp>
using Catch::Approx;
#endif
