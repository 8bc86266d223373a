#include "net/server.hpp"
