#include "actors/engine.hpp"
