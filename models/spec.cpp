#include "models/spec.hpp"
