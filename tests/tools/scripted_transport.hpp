// scripted_transport: a transport and the server behind it in one object, without sockets. It gives
// each exchange (a request and its reply) the bytes that a server would send, at the scripted times
// of its made_up_time.
#pragma once

#include <functional>

#include "tests/tools/bench_dialects.hpp"
#include "tests/tools/made_up_time.hpp"
#include "tools/twill-bench/engine/transport.hpp"

namespace twill::tests {

/// `plan(i)` is the script of the i-th request.
bench::transport_factory scripted_transport(made_up_time& time, std::function<script(int)> plan);

} // namespace twill::tests
