// backends: the functions that make the protocol object of each backend, for the table of backends
// in protocol.cpp. Each is implemented in a file of its own.
#pragma once

#include <memory>

#include "tools/twill-bench/protocols/protocol.hpp"

namespace twill::bench {

std::unique_ptr<protocol> make_openai(const serve_options& options);
std::unique_ptr<protocol> make_openai_chat(const serve_options& options);
std::unique_ptr<protocol> make_llama_cpp(const serve_options& options);
std::unique_ptr<protocol> make_tgi(const serve_options& options);
std::unique_ptr<protocol> make_twill_stream(const serve_options& options);
std::unique_ptr<protocol> make_responses_ws(const serve_options& options);

} // namespace twill::bench
