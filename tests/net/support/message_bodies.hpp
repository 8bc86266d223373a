// Bodies of the Messages API, as Anthropic's SDK and coding agents write them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace twill::testing {

inline const std::string short_message =
    R"({"model":"test-model","max_tokens":5,"messages":[{"role":"user","content":"hi"}]})";

/// A request with every field that is honoured or has no effect.
inline const std::string full_message = R"({
  "model":"test-model","max_tokens":32000,"stream":true,"temperature":0.5,"top_k":7,"top_p":0.9,
  "stop_sequences":["END","</done>"],"cache_control":{"type":"ephemeral"},
  "system":[{"type":"text","text":"Be brief."},
            {"type":"text","text":"Be kind.","cache_control":{"type":"ephemeral","ttl":"1h"}}],
  "metadata":{"user_id":"user_0123456789abcdef_account__session_00000000-0000-0000-0000-000000000000"},
  "service_tier":"auto","inference_geo":"eu","speed":"fast","container":null,"mcp_servers":[],
  "thinking":{"type":"enabled","budget_tokens":1024,"display":"summarized"},
  "context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"},
                                 {"type":"clear_tool_uses_20250919"}]},
  "output_config":{"effort":"high"},
  "tools":[
    {"name":"weather","description":"The weather of a city.","cache_control":{"type":"ephemeral"},
     "input_schema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]},
     "eager_input_streaming":true,"strict":true,"input_examples":[{"city":"Rome"}]},
    {"type":"custom","name":"time","input_schema":{"type":"object"},"defer_loading":false,
     "allowed_callers":["direct"]}],
  "tool_choice":{"type":"auto","disable_parallel_tool_use":true},
  "messages":[
    {"role":"user","content":[{"type":"text","text":"Weather?","cache_control":null},
                              {"type":"text","text":"In Oslo."}]},
    {"role":"assistant","content":[
      {"type":"thinking","thinking":"They ask for weather.","signature":"sig"},
      {"type":"redacted_thinking","data":"opaque"},
      {"type":"text","text":"I look.","citations":null},
      {"type":"tool_use","id":"toolu_1","name":"weather","input":{"city":"Oslo"},
       "caller":{"type":"direct"}},
      {"type":"tool_use","id":"toolu_2","name":"time","input":{}}]},
    {"role":"user","content":[
      {"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"rain"},
                                                              {"type":"text","text":"cold"}]},
      {"type":"text","text":"And?"},
      {"type":"tool_result","tool_use_id":"toolu_2","is_error":true,"content":"no clock"}]},
    {"role":"system","content":"One sentence."},
    {"role":"user","content":"Go on."},
    {"role":"user","content":[{"type":"text","text":"Now."}]}]})";

/// The answer continues the last message, and must follow a JSON schema.
inline const std::string begun_message = R"({
  "max_tokens":9,"system":"Sum up.","output_config":{"format":{"type":"json_schema",
    "schema":{"type":"object","properties":{"sum":{"type":"integer"}}}}},
  "thinking":{"type":"disabled"},
  "messages":[{"role":"user","content":"1 and 1?"},{"role":"assistant","content":"{\"sum\":"}]})";

} // namespace twill::testing
